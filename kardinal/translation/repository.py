"""Validate the repository of a Pipeline.

A URL is written by the author of a Pipeline, and the controller acts on it. A path or a `file://` URL would reach
into the file system of the controller's pod, so both need the operator's word. What a URL may look like is decided in
the Git room; here its refusals get a field, and the provider is held against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kardinal.api.names import PROPOSALS
from kardinal.api.pipeline import Git
from kardinal.api.repository_url import InvalidRepositoryURL, LocalRepositoryRefused, RepositoryURL
from kardinal.policy.binding import clean_branch
from kardinal.translation.errors import Problem

__all__ = ["Features", "repository_problems"]


@dataclass(frozen=True, slots=True)
class Features:
    """The features that the operator has allowed beyond the default."""

    allow_local_repositories: bool = False


def repository_problems(git: Git, *, subject: str, features: Features) -> Iterator[Problem]:
    """Why the repository of a Pipeline cannot be written to by this version."""
    yield from _branch_problems(git.branch, subject=subject)
    try:
        url = RepositoryURL.parse(git.url, allow_local=features.allow_local_repositories)
    except (InvalidRepositoryURL, LocalRepositoryRefused) as error:
        yield Problem(subject, f"spec.{error.field}", error.name, error.message, error.remedy)
        return
    if git.provider == "local" and url.path is None:
        yield Problem(
            subject,
            "spec.git.provider",
            "NotAvailable",
            "provider local keeps pull requests inside a bare repository on this machine, which spec.git.url is not",
            "use a file:// URL, or provider git",
        )


def _branch_problems(branch: str, *, subject: str) -> Iterator[Problem]:
    """Refuse a second spelling of a branch, and branches that hold the proposals of promotions."""
    short = clean_branch(branch)
    if branch.startswith("refs/"):
        message = f"{branch} is a full reference, and not the name of a branch"
        yield Problem(subject, "spec.git.branch", "InvalidBranch", message, f"write {short}")
    if short.casefold().startswith(PROPOSALS):
        message = f"branches below {PROPOSALS} hold proposals, which are reviewed where they are merged to"
        yield Problem(subject, "spec.git.branch", "InvalidBranch", message, "promote to a branch by another name")
