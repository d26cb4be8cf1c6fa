"""`wait-for-merge`: wait until a person, or with `pr: true` the agent itself, has merged the pull request.

Every wake asks the provider before anything is believed. A pull request that was closed without a merge is a decision
of a person: it ends the promotion.
"""

from __future__ import annotations

from kardinal.api import names
from kardinal.git import MergeConflict
from kardinal.scm import PullRequest, PullRequests
from kardinal.steps.commit_plan import commit_message, edit_of
from kardinal_agent.errors import StepFailed
from kardinal_agent.steps.base import Done, Outcome, StepContext, Waiting

__all__ = ["MERGED_BY", "WaitForMerge", "waiting_message"]

MERGED_BY = "kardinal"
"""Who merges what needs no review."""


class WaitForMerge:
    async def run(self, context: StepContext) -> Outcome:
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


def waiting_message(url: str) -> str:
    return f"waits for {url} to be merged"


async def _merge(context: StepContext, pull_requests: PullRequests, number: int) -> PullRequest:
    try:
        return await pull_requests.merge(number, by=MERGED_BY)
    except MergeConflict:
        # Others changed the same lines since the proposal was made. The edit has an answer for any content, so the
        # proposal is made again on today's branch; nobody reviews this one, so nobody's commits are on it.
        repository = (await context.remote()).repository
        branch = names.branch_name(context.bundle.metadata.name, context.step.spec.environment)
        edit = edit_of(context.step, context.bundle, context.sequence[: context.index])
        message = commit_message(context.step, context.bundle)
        await repository.delete_branch(branch)
        await repository.propose(branch, base=context.step.spec.git.branch, edit=edit, message=message)
        return await pull_requests.merge(number, by=MERGED_BY)


def _merged(found: PullRequest, context: StepContext) -> Done:
    by = found.merged_by or "somebody"
    return Done(
        f"pull request {found.number} was merged by {by}",
        outputs={"mergedBy": by},
        update={"merged_at": context.now, "commit": found.merge_commit or context.status.commit},
    )
