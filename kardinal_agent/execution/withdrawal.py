"""Taking back a promotion whose environment another Bundle has taken over.

What has landed has landed and goes on to its end; that is asked of the repository, because the process may have died
between landing and noting it. A pull request that waits for a review is closed with a comment that says why, and its
branch is removed unless others have committed to it.

The pull request of a promotion that has failed stays open, because `kardinal retry` goes on with it; a comment and the
statuses say that merging it alone does nothing for the promotion.
"""

from __future__ import annotations

import asyncio

import structlog

from kardinal.scm import PullRequest, PullRequestEnded, PullRequestError, PullRequests
from kardinal.steps.markdown import cell
from kardinal_agent.errors import classified
from kardinal_agent.remotes import Queued, Remote
from kardinal_agent.steps import StepContext
from kardinal_agent.steps.pull_requests import AGENT, own_pull_request, tell_gates

__all__ = ["OUTCOME", "tell_failure", "withdraw"]

OUTCOME = "outcome"
"""The marker of the comment that says what has become of the promotion."""

_DEADLINE = 10.0
"""Seconds of real time that a host has to take the news of a failure."""

log = structlog.get_logger(__name__)


async def withdraw(context: StepContext, reason: str) -> bool:
    """Return whether the change has landed; when it has not, nothing of it is left to be merged.

    `reason` is in the comment on its pull request.
    """
    remote = await context.remote()
    if await remote.repository.find(context.target, context.message.trailers) is not None:
        return True
    if not context.proposes:
        return False
    found = await _pull_request(context, remote.proposals)
    why = f"Bundle {context.bundle.metadata.name} is {reason}"
    if found is not None:
        if found.state == "merged" or await _is_merged_instead(remote.proposals, found, f"{why}."):
            return True
        await _take_success_back(context, remote, found, why)
    await remote.repository.retract(
        context.branch, base=context.target, edit=context.edit, message=context.message, ours=context.status.commit
    )
    return False


async def _pull_request(context: StepContext, pull_requests: PullRequests) -> PullRequest | None:
    noted = context.status.pull_request
    if noted is not None:
        return await pull_requests.get(noted.number)
    return await own_pull_request(context, pull_requests)


async def _is_merged_instead(pull_requests: PullRequests, found: PullRequest, comment: str) -> bool:
    """Close an open pull request; a person may merge it at the same moment, and wins."""
    if found.state == "closed":
        return False
    try:
        await pull_requests.close(found.number, by=AGENT, comment=comment)
    except PullRequestEnded:
        return True
    return False


async def _take_success_back(context: StepContext, remote: Remote, found: PullRequest, why: str) -> None:
    """Say of the head of a closed pull request that it is not to be merged: a person could open it again."""
    if not remote.capabilities.statuses or found.head_commit is None:
        return
    try:
        await tell_gates(context, remote, found.head_commit, [why])
    except PullRequestError as error:
        if error.transient:
            raise
        log.warning("a commit keeps its statuses", pull_request=found.url, error=str(error))


async def tell_failure(context: StepContext, message: str) -> None:
    """Say on a pull request that is still open that its promotion has failed; a host that does not answer is not told.

    `message` is why.
    """
    noted = context.status.pull_request
    if noted is None or context.status.promoted_at is not None:
        return
    try:
        async with asyncio.timeout(_DEADLINE):
            await _tell_failure(context, noted.number, message)
    except Queued as queued:
        log.warning("a pull request was not told of a failure", pull_request=noted.url, error=queued.message)
    except Exception as error:
        log.warning("a pull request was not told of a failure", pull_request=noted.url, error=classified(error).message)


async def _tell_failure(context: StepContext, number: int, message: str) -> None:
    remote, spec = await context.remote(), context.step.spec
    found = await remote.proposals.get(number)
    if found.state != "open":
        return
    bundle = context.bundle.metadata.name
    await remote.proposals.comment(
        number,
        f"The promotion of Bundle {bundle} to {spec.environment} has failed: {cell(message)}\n\n"
        "Merging this pull request changes the environment, and no promotion goes on from it any more. "
        f"`kardinal retry {bundle} --env {spec.environment}` goes on with it; else close it.",
        marker=OUTCOME,
    )
    if remote.capabilities.statuses and found.head_commit is not None:
        await tell_gates(context, remote, found.head_commit, [f"the promotion has failed: {message}"])
