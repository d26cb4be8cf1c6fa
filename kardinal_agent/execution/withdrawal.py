"""Taking back a promotion whose Bundle is superseded.

What has landed has landed and goes on to its end; that is asked of the repository, because the process may have died
between landing and noting it. A pull request that waits for a review is closed with a comment that says why.
"""

from __future__ import annotations

from kardinal.scm import PullRequest, PullRequestEnded, PullRequests
from kardinal_agent.steps import StepContext
from kardinal_agent.steps.pull_requests import AGENT, own_pull_request

__all__ = ["withdraw"]


async def withdraw(context: StepContext) -> bool:
    """Return whether the change has landed; when it has not, nothing of it is left to be merged."""
    remote = await context.remote()
    if await remote.repository.find(context.target, context.message.trailers) is not None:
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
    return await own_pull_request(context, pull_requests)


async def _close(context: StepContext, pull_requests: PullRequests, number: int) -> bool:
    """Return whether it was closed; a person may merge at the same moment, and wins."""
    comment = f"A newer Bundle of {context.step.spec.pipeline} supersedes {context.bundle.metadata.name}."
    try:
        await pull_requests.close(number, by=AGENT, comment=comment)
    except PullRequestEnded:
        return False
    return True
