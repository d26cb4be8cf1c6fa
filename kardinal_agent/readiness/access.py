"""Ask the API of a host whether a credential has the rights that a Pipeline needs, before its first promotion.

Only the rights that the environments need are asked for, in at most `_BRANCHES` + 8 requests. An environment without a
pull request needs to push to its branch. An environment with `pr` needs pull requests, a permitted merge method, and a
branch that accepts the merge. If the environments need Git alone, an API that refuses the credential is no problem: the
rights to push are then tried with Git.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.steps.declaration import PlannedStep, Role
from kardinal.scm import HostAccess, HostError, Need, PullRequests
from kardinal_agent.readiness.check import Promotions
from kardinal_agent.remotes import Remote

__all__ = ["AccessProblem", "check_access"]

_BRANCHES: Final = 8
"""The most branches that are asked about; further branches of a Pipeline are mostly protected by the same rule."""


class AccessProblem(KardinalError):
    """Rights that promotions lack at the host: the `reason` of the first problem, with the messages of all."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(message for _, message in problems))
        self.reason = problems[0][0]

    @property
    def name(self) -> str:
        return self.reason


async def check_access(remote: Remote, promotions: Promotions, *, statuses: bool) -> None:
    """Raise `AccessProblem` with every missing right.

    `statuses`: whether commit statuses are written to pull requests of others, too.
    """
    pulls = remote.pull_requests
    if pulls is None or remote.capabilities.local:
        return
    proposes = any(_has(sequence, Role.PROPOSE) for _, sequence in promotions)
    needs: list[Need] = ["pull-requests"] if proposes else []
    if remote.capabilities.statuses and (proposes or statuses):
        needs.append("statuses")
    asked = promotions[0][0].spec.git.pull_request if proposes else None
    if asked is not None and asked.team_reviewers:
        needs.append("teams")
    try:
        access = await pulls.access(needs)
        problems = list(_problems(access, promotions, proposes=proposes))
        if not access.archived:
            problems += await _branch_problems(pulls, promotions)
    except HostError:
        if needs:
            raise
        return
    if problems:
        raise AccessProblem(problems)


def _problems(access: HostAccess, promotions: Promotions, *, proposes: bool) -> Iterator[tuple[str, str]]:
    git = promotions[0][0].spec.git
    if access.archived:
        yield "RepositoryArchived", f"git.url: {git.url} is archived: unarchive it, or name another repository"
        return
    if not access.push:
        yield "PushDenied", f"git.secretRef: the credential may not write to {git.url}: give its user that right"
    if proposes and not access.pull_requests:
        yield (
            "PullRequestsDisabled",
            f"git.url: pull requests are switched off at {git.url}: switch them on, or use approval: auto without pr",
        )
    if access.lacks:
        yield "PermissionMissing", f"git.secretRef: the token lacks {', '.join(access.lacks)}: give it that"
    method = git.merge_method
    merges = any(_has(sequence, Role.MERGE) for _, sequence in promotions)
    if merges and method is not None and access.merge_methods and method not in access.merge_methods:
        allowed = ", ".join(sorted(access.merge_methods))
        yield (
            "MergeMethodForbidden",
            f"git.mergeMethod: the settings of {git.url} forbid {method}: choose {allowed}, or allow it there",
        )


async def _branch_problems(pulls: PullRequests, promotions: Promotions) -> list[tuple[str, str]]:
    pushed = _branches((step, sequence) for step, sequence in promotions if not _has(sequence, Role.PROPOSE))
    merged = _branches((step, sequence) for step, sequence in promotions if _has(sequence, Role.MERGE))
    problems = []
    for branch in list(dict.fromkeys([*pushed, *merged]))[:_BRANCHES]:
        access = await pulls.branch_access(branch)
        if branch in pushed and access.push is False:
            problems.append(_protected(branch, pushed[branch], "push to it", "or use pr: true"))
        if branch in merged and access.merge is False:
            problems.append(_protected(branch, merged[branch], "merge into it", "or use approval: pr-review"))
    return problems


def _protected(branch: str, environment: str, right: str, otherwise: str) -> tuple[str, str]:
    return (
        "BranchProtected",
        f"environment {environment}: branch {branch} is protected, and the credential may not {right}: "
        f"let its user in the protection of the branch, {otherwise}",
    )


def _branches(promotions: Iterator[tuple[PromotionStep, Sequence[PlannedStep]]]) -> dict[str, str]:
    """Return the target branches, each with the first environment that is written to it."""
    found: dict[str, str] = {}
    for step, _ in promotions:
        found.setdefault(step.spec.target_branch, step.spec.environment)
    return found


def _has(sequence: Sequence[PlannedStep], role: Role) -> bool:
    return any(planned.declaration.role is role for planned in sequence)
