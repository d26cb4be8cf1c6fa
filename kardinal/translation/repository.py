"""Validate the repository of a Pipeline.

A URL is written by the author of a Pipeline, and the controller acts on it. A path or a `file://` URL would reach
into the file system of the controller's pod, so both need the operator's word. What a URL may look like is decided in
the Git room; here its refusals get a field, and the provider is held against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kardinal.api.names import PROPOSALS
from kardinal.api.pipeline import ConfigUpdate, Git, StepSpec, Update
from kardinal.api.repository_url import InvalidRepositoryURL, LocalRepositoryRefused, RepositoryURL, same_host
from kardinal.objects.suggestions import nearest
from kardinal.policy.binding import clean_branch
from kardinal.steps.declaration import Role
from kardinal.steps.message_template import template_problems
from kardinal.steps.registry import Registry
from kardinal.steps.sequence import declaration_of
from kardinal.translation.errors import Problem

__all__ = [
    "Features",
    "branch_problems",
    "config_problems",
    "input_problems",
    "repository_problems",
    "unknown_name",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The names that this program executes, and what the operator has allowed beyond the default."""

    registry: Registry
    allow_local_repositories: bool = False
    allow_insecure_git: tuple[str, ...] = ()


def repository_problems(git: Git, *, subject: str, features: Features) -> Iterator[Problem]:
    """Why the repository of a Pipeline cannot be written to by this version."""
    yield from branch_problems(git.branch, subject=subject, field="spec.git.branch")
    for field, problem, remedy in template_problems(git.message):
        yield Problem(subject, f"spec.git.message.{field}", "UnknownPlaceholder", problem, remedy)
    capabilities = features.registry.providers.get(git.provider)
    if capabilities is None:
        yield unknown_name(subject, "spec.git.provider", git.provider, features.registry.providers)
    elif git.merge_method is not None and git.merge_method not in capabilities.merge_methods:
        yield Problem(
            subject,
            "spec.git.mergeMethod",
            "NotAvailable",
            f"provider {git.provider} does not let Pipelines choose how it merges",
            "leave it out, or use another provider",
        )
    if capabilities is not None and git.status_on_others and not capabilities.statuses:
        yield Problem(
            subject,
            "spec.git.statusOnOthers",
            "NotAvailable",
            f"provider {git.provider} shows no commit statuses",
            "leave it out, or use another provider",
        )
    if capabilities is not None and git.webhook_secret_ref is not None and not capabilities.webhooks:
        yield Problem(
            subject,
            "spec.git.webhookSecretRef",
            "NotAvailable",
            f"provider {git.provider} sends no webhooks",
            "leave it out, or name the host in spec.git.provider",
        )
    try:
        url = RepositoryURL.parse(
            git.url, allow_local=features.allow_local_repositories, insecure=features.allow_insecure_git
        )
    except (InvalidRepositoryURL, LocalRepositoryRefused) as error:
        yield Problem(subject, f"spec.{error.field}", error.name, error.message, error.remedy)
        return
    if url.scheme == "ssh" and git.secret_ref is None:
        yield Problem(
            subject,
            "spec.git.secretRef",
            "SecretMissing",
            "a repository by ssh needs a key",
            "name a Secret with ssh-privatekey and known_hosts",
        )
    if url.path is not None and git.secret_ref is not None:
        yield _needless_secret(subject, "spec.git.secretRef")
    if capabilities is not None and capabilities.local and url.path is None:
        yield Problem(
            subject,
            "spec.git.provider",
            "NotAvailable",
            "provider local keeps pull requests inside a bare repository on this machine, which spec.git.url is not",
            "use a file:// URL, or provider git",
        )


def _needless_secret(subject: str, field: str) -> Problem:
    message = "a repository on this machine is opened without a credential"
    return Problem(subject, field, "NotAvailable", message, "leave it out, or name a repository at a host")


def unknown_name(subject: str, field: str, name: str, known: Iterable[str]) -> Problem:
    """Return the problem of a name that nothing here executes, with the nearest one that something does."""
    names = sorted(known)
    near = nearest(name, names)
    remedy = f"did you mean {near}?" if near else f"use {' or '.join(names)}"
    return Problem(subject, field, "NotAvailable", f"{name!r} is not available in this version", remedy)


def config_problems(update: Update, git: Git, *, subject: str, field: str, features: Features) -> Iterator[Problem]:
    """Why configuration cannot be taken from where `update.config`, which is at `field`, says."""
    config = update.config or ConfigUpdate()
    if config.branch is not None:
        yield from branch_problems(config.branch, subject=subject, field=f"{field}.branch")
    try:
        parsed = RepositoryURL.parse(
            config.repository or git.url,
            allow_local=features.allow_local_repositories,
            insecure=features.allow_insecure_git,
        )
    except (InvalidRepositoryURL, LocalRepositoryRefused) as error:
        # That of the Pipeline is refused by itself.
        if config.repository is not None:
            yield Problem(subject, f"{field}.repository", error.name, error.message, error.remedy)
        return
    if parsed.path is not None and config.secret_ref is not None:
        yield _needless_secret(subject, f"{field}.secretRef")


def input_problems(
    steps: Iterable[StepSpec] | None, git: Git, *, subject: str, field: str, features: Features
) -> Iterator[Problem]:
    """Why the inputs of a sequence, which is at `field`, cannot be opened; `steps` is None where there is none."""
    for index, step in enumerate(steps or ()):
        url, table = (step.config or {}).get("url"), features.registry.steps
        is_input = step.uses in table and declaration_of(step, table).role is Role.INPUT
        if not is_input or not isinstance(url, str):
            continue
        place = f"{field}[{index}].config"
        try:
            parsed = RepositoryURL.parse(
                url, allow_local=features.allow_local_repositories, insecure=features.allow_insecure_git
            )
            own = git.secret_ref is not None and same_host(url, git.url)
        except (InvalidRepositoryURL, LocalRepositoryRefused) as error:
            yield Problem(subject, f"{place}.url", error.name, error.message, error.remedy)
            continue
        if parsed.scheme == "ssh" and not own and not (step.config or {}).get("secretRef"):
            message, remedy = "a repository by ssh needs a key", "name a Secret with ssh-privatekey and known_hosts"
            yield Problem(subject, f"{place}.secretRef", "SecretMissing", message, remedy)
        if parsed.path is not None and (step.config or {}).get("secretRef"):
            yield _needless_secret(subject, f"{place}.secretRef")


def branch_problems(branch: str, *, subject: str, field: str) -> Iterator[Problem]:
    """Refuse a second spelling of a branch, and branches that hold the proposals of promotions."""
    short = clean_branch(branch)
    if branch.startswith("refs/"):
        message = f"{branch} is a full reference, and not the name of a branch"
        yield Problem(subject, field, "InvalidBranch", message, f"write {short}")
    if short.casefold().startswith(PROPOSALS):
        message = f"branches below {PROPOSALS} hold proposals, which are reviewed where they are merged to"
        yield Problem(subject, field, "InvalidBranch", message, "promote to a branch by another name")
