"""`wait-for-merge`: wait until a person, or with `pr: true` the agent itself, has merged the pull request.

Every notification is followed by a question to the provider before anything is believed. A pull request that was closed
without a merge is a decision of a person: it ends the promotion.
"""

from __future__ import annotations

from kardinal.git import MergeConflict
from kardinal.scm import PullRequest, PullRequests
from kardinal_agent.errors import StepFailed
from kardinal_agent.steps.base import Done, StepContext, StepResult, Waiting
from kardinal_agent.steps.pull_requests import AGENT, waiting_message

__all__ = ["WaitForMerge"]


class WaitForMerge:
    async def run(self, context: StepContext) -> StepResult:
        noted = context.status.pull_request
        if noted is None:
            return Done("no pull request to wait for")
        pull_requests = (await context.remote()).proposals
        found = await pull_requests.get(noted.number)
        if found.state == "open" and context.merges_itself:
            if context.holds():
                return Waiting(f"pull request {noted.number} is ready to be merged", held=True)
            found = await _merge(context, pull_requests, noted.number)
        if found.state == "open":
            return Waiting(waiting_message(noted.url), subscribe=pull_requests.subscribe)
        if found.state == "closed":
            by = f" by {found.closed_by}" if found.closed_by else ""
            raise StepFailed("PullRequestClosed", f"pull request {noted.url} was closed{by} without being merged")
        return _merged(found, context)


async def _merge(context: StepContext, pull_requests: PullRequests, number: int) -> PullRequest:
    try:
        return await pull_requests.merge(number, by=AGENT)
    except MergeConflict:
        # Others changed the same lines since the change was proposed. The edit has an answer for any content, so it is
        # proposed again on today's branch; this pull request has no reviewer, so no commits of others are lost with it.
        remote = await context.remote()
        await remote.repository.delete_branch(context.branch)
        await remote.repository.propose(
            context.branch, base=context.target, edit=context.edit, message=context.message, signer=remote.signer
        )
        return await pull_requests.merge(number, by=AGENT)


def _merged(found: PullRequest, context: StepContext) -> Done:
    by = found.merged_by or "an unknown user"
    return Done(
        f"pull request {found.number} was merged by {by}",
        outputs={"mergedBy": by},
        update={"merged_at": context.now, "commit": found.merge_commit or context.status.commit},
    )
