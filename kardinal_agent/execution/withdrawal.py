"""Taking back a promotion whose Bundle is superseded.

What has landed has landed and is seen through to its end; that is asked of the repository, because the process may have
died between landing and noting it. What waits for a review is closed with a comment that says why.
"""

from __future__ import annotations

from kardinal.api import names
from kardinal.scm import PullRequest, PullRequestEnded, PullRequests
from kardinal.steps.commit_plan import trailers_of
from kardinal_agent.steps.base import StepContext
from kardinal_agent.steps.wait_for_merge import MERGED_BY

__all__ = ["withdraw"]


async def withdraw(context: StepContext) -> bool:
    """Whether the change has landed; when it has not, nothing of it is left to be merged."""
    remote = await context.remote()
    target = context.step.spec.git.branch
    if await remote.repository.find(target, trailers_of(context.step, context.bundle)) is not None:
        return True
    if not context.proposes:
        return False
    found = await _pull_request(context, remote.proposals)
    if found is None or found.state == "closed":
        return False
    if found.state == "merged":
        return True
    return not await _close(context, remote.proposals, found.number)


async def _pull_request(context: StepContext, pull_requests: PullRequests) -> PullRequest | None:
    noted = context.status.pull_request
    if noted is not None:
        return await pull_requests.get(noted.number)
    branch = names.branch_name(context.bundle.metadata.name, context.step.spec.environment)
    found = await pull_requests.find(branch)
    started = context.status.started_at
    return found if found is not None and started is not None and found.created_at >= started else None


async def _close(context: StepContext, pull_requests: PullRequests, number: int) -> bool:
    """Whether it was closed; a person may merge at the same moment, and wins."""
    comment = f"A newer Bundle of {context.step.spec.pipeline} supersedes {context.bundle.metadata.name}."
    try:
        await pull_requests.close(number, by=MERGED_BY, comment=comment)
    except PullRequestEnded:
        return False
    return True
