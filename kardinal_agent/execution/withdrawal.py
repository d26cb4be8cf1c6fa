"""Taking back a promotion whose environment another Bundle has taken over.

What has landed has landed and goes on to its end; that is asked of the repository, because the process may have died
between landing and noting it. A pull request that waits for a review is closed with a comment that says why, and its
branch is removed unless others have committed to it.
"""

from __future__ import annotations

from kardinal.scm import PullRequest, PullRequestEnded, PullRequests
from kardinal_agent.steps import StepContext
from kardinal_agent.steps.pull_requests import AGENT, own_pull_request

__all__ = ["withdraw"]


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
    comment = f"Bundle {context.bundle.metadata.name} is {reason}."
    if found is not None and (found.state == "merged" or await _is_merged_instead(remote.proposals, found, comment)):
        return True
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
