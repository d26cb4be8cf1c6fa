"""Reviewers, assignees and labels of a pull request: assigned once, when it is opened, and then left to people.

The status notes the number of the pull request that has got them. A process that dies before that note assigns them
again, and the provider keeps those that are there already. Later runs, and an attempt that continues with the same pull
request, assign none. A name that the host refuses is reported, and the promotion goes on without it.
"""

from __future__ import annotations

from collections.abc import Iterable

from kardinal.promotion.api.pipeline import PullRequestFields
from kardinal.promotion.api.promotion_step import NOT_ASSIGNED
from kardinal.scm import Assignments, PullRequest, Unassigned
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.base import Flag, StatusFields, StepContext

__all__ = ["assign"]


async def assign(context: StepContext, remote: Remote, opened: PullRequest) -> tuple[StatusFields, Flag | None]:
    """Assign people and labels to a pull request once; return the fields to note, and the flag for refused names."""
    asked = context.step.spec.git.pull_request
    proposal = context.status.proposal
    wanted = _wanted(asked) if asked is not None else Assignments()
    if wanted == Assignments() or proposal is None or proposal.assigned == opened.number:
        return StatusFields(), None
    unassigned = await remote.proposals.assign(opened.number, wanted)
    noted = StatusFields(proposal=proposal.model_copy(update={"assigned": opened.number}))
    return noted, Flag(NOT_ASSIGNED, _missing(opened, unassigned)) if unassigned else None


def _wanted(asked: PullRequestFields) -> Assignments:
    return Assignments(
        reviewers=asked.reviewers,
        team_reviewers=asked.team_reviewers,
        assignees=asked.assignees,
        labels=asked.labels,
    )


def _missing(opened: PullRequest, unassigned: Iterable[Unassigned]) -> str:
    """Return a text with the refused names, each with its field; names with the same reason are joined."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for each in unassigned:
        reasons.setdefault((each.field, each.reason), []).append(each.name)
    lacks = [f"{field} {', '.join(names)} ({reason})" for (field, reason), names in reasons.items()]
    return f"{opened.url} lacks, of git.pullRequest: {'; '.join(lacks)}"
