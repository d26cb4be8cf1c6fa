"""Validate the repository of a Pipeline.

The author of a Pipeline writes the URL, and the controller opens it. A path or a `file://` URL reaches into the file
system of the controller's pod, and plain HTTP is unencrypted, so the operator must allow both. The rules for URLs are
in `kardinal.tree.repository_url`; this module turns their errors into problems with a field, and checks the provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kardinal.objects.capabilities import Capabilities, PullRequestField
from kardinal.objects.suggestions import nearest
from kardinal.promotion.api.pipeline import ConfigUpdate, Git, PullRequestFields, StepSpec, Update
from kardinal.promotion.policy.binding import clean_branch
from kardinal.promotion.steps.declaration import Role
from kardinal.promotion.steps.message_template import template_problems
from kardinal.promotion.steps.registry import Registry
from kardinal.promotion.steps.sequence import declaration_of
from kardinal.promotion.translation.errors import Problem
from kardinal.tree.git_names import PROPOSALS, is_own_label
from kardinal.tree.repository_url import InvalidRepositoryURL, LocalRepositoryRefused, RepositoryURL, same_host

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
    """The providers, steps and health adapters of this program, and the options that the operator has allowed."""

    registry: Registry
    allow_local_repositories: bool = False
    allow_insecure_git: tuple[str, ...] = ()


def repository_problems(git: Git, *, subject: str, features: Features) -> Iterator[Problem]:
    """Yield the reasons why this version cannot write to the repository of a Pipeline."""
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
    if capabilities is not None and git.pull_request is not None:
        yield from _pull_request_problems(git.pull_request, git.provider, capabilities, subject=subject)
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


def _pull_request_problems(
    asked: PullRequestFields, provider: str, capabilities: Capabilities, *, subject: str
) -> Iterator[Problem]:
    """Yield a problem for each field that the provider cannot set on pull requests, and for kardinal's own labels.

    Its own labels are refused because kardinal adds and removes them itself.
    """
    fields: dict[PullRequestField, bool] = {
        "reviewers": bool(asked.reviewers),
        "teamReviewers": bool(asked.team_reviewers),
        "assignees": bool(asked.assignees),
        "labels": bool(asked.labels),
        "draft": asked.draft,
    }
    for name, given in fields.items():
        if given and name not in capabilities.pull_request_fields:
            field = f"spec.git.pullRequest.{name}"
            message = f"provider {provider} has none for pull requests"
            yield Problem(subject, field, "NotAvailable", message, "leave it out, or use another provider")
    for index, label in enumerate(asked.labels):
        if is_own_label(label.casefold()):
            field = f"spec.git.pullRequest.labels[{index}]"
            message = f"{label} is a label of kardinal's own"
            yield Problem(subject, field, "OwnLabel", message, "leave it out: kardinal adds what belongs there")


def _needless_secret(subject: str, field: str) -> Problem:
    message = "a repository on this machine is opened without a credential"
    return Problem(subject, field, "NotAvailable", message, "leave it out, or name a repository at a host")


def unknown_name(subject: str, field: str, name: str, known: Iterable[str]) -> Problem:
    """Return the problem of a name that is not implemented here, suggesting the nearest implemented name."""
    names = sorted(known)
    near = nearest(name, names)
    remedy = f"did you mean {near}?" if near else f"use {' or '.join(names)}"
    return Problem(subject, field, "NotAvailable", f"{name!r} is not available in this version", remedy)


def config_problems(update: Update, git: Git, *, subject: str, field: str, features: Features) -> Iterator[Problem]:
    """Yield the reasons why the configuration in `update.config` cannot be read.

    `field` is the path of `update.config`.
    """
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
        # Without a repository of its own, the URL is that of the Pipeline, whose problem is reported elsewhere.
        if config.repository is not None:
            yield Problem(subject, f"{field}.repository", error.name, error.message, error.remedy)
        return
    if parsed.path is not None and config.secret_ref is not None:
        yield _needless_secret(subject, f"{field}.secretRef")


def input_problems(
    steps: Iterable[StepSpec] | None, git: Git, *, subject: str, field: str, features: Features
) -> Iterator[Problem]:
    """Yield the reasons why input steps in a sequence cannot be opened. `field` is the path of the sequence.

    `steps` is None if the environment lists no steps.
    """
    for index, step in enumerate(steps or ()):
        url = (step.config or {}).get("url")
        table = features.registry.steps
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
            message = "a repository by ssh needs a key"
            remedy = "name a Secret with ssh-privatekey and known_hosts"
            yield Problem(subject, f"{place}.secretRef", "SecretMissing", message, remedy)
        if parsed.path is not None and (step.config or {}).get("secretRef"):
            yield _needless_secret(subject, f"{place}.secretRef")


def branch_problems(branch: str, *, subject: str, field: str) -> Iterator[Problem]:
    """Yield a problem for a full reference such as `refs/heads/main`, and for a branch that is kept for proposals."""
    short = clean_branch(branch)
    if branch.startswith("refs/"):
        message = f"{branch} is a full reference, and not the name of a branch"
        yield Problem(subject, field, "InvalidBranch", message, f"write {short}")
    if short.casefold().startswith(PROPOSALS):
        message = f"branches below {PROPOSALS} hold proposals, which are reviewed where they are merged to"
        yield Problem(subject, field, "InvalidBranch", message, "promote to a branch by another name")
