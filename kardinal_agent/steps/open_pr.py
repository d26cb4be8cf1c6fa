"""`open-pr`: ask for the change to be merged, once.

A pull request of this promotion that has ended already is taken as it is, so that the next step sees how it ended; an
open one is adopted by opening it again.
"""

from __future__ import annotations

from kardinal.api.promotion_step import PullRequestStatus
from kardinal.git import Repository
from kardinal.scm import NewPullRequest, PullRequest
from kardinal.steps.pull_request_text import LABEL, Proposal, body, title
from kardinal_agent.steps.base import Announcement, Done, StepContext, StepResult
from kardinal_agent.steps.pull_requests import own_pull_request, waiting_message

__all__ = ["PULL_REQUEST_OPENED", "OpenPullRequest"]

PULL_REQUEST_OPENED = "PullRequestOpened"
"""The reason of the Event about a new pull request."""


class OpenPullRequest:
    async def run(self, context: StepContext) -> StepResult:
        if context.facts.changed is False:
            return Done("nothing to change: no pull request is needed")
        remote = await context.remote()
        own = await own_pull_request(context, remote.proposals)
        if own is not None and own.state != "open":
            return _done(own, context)
        if context.facts.merged_commit is not None:
            return Done("merged already")
        opened = await remote.proposals.open(await _new(context, remote.repository))
        return _done(opened, context, Announcement(PULL_REQUEST_OPENED, f"Opened {opened.url}: {opened.title}"))


def _done(pull_request: PullRequest, context: StepContext, announcement: Announcement | None = None) -> Done:
    noted = PullRequestStatus(number=pull_request.number, url=pull_request.url, branch=context.branch)
    return Done(
        waiting_message(pull_request.url),
        update={"pull_request": noted, "pr_url": pull_request.url},
        announcement=announcement,
    )


async def _new(context: StepContext, repository: Repository) -> NewPullRequest:
    spec, head = context.step.spec, await repository.head(context.target)
    proposal = Proposal(
        pipeline=spec.pipeline,
        environment=spec.environment,
        bundle=context.bundle,
        gates=context.gates(),
        changes=await repository.examine(head.commit, context.image_changes),
        diff=context.status.diff,
        merged_by_agent=context.merges_itself,
        now=context.now,
    )
    return NewPullRequest(
        title=title(proposal),
        body=body(proposal),
        head=context.branch,
        base=context.target,
        labels=(LABEL,),
        environment=spec.environment,
        bundle=context.bundle.metadata.name,
        pipeline=spec.pipeline,
    )
