"""`open-pr`: open one pull request for the change.

A pull request of this promotion that was merged or closed already is noted as it is, and the next step decides about
it; an open one is adopted. If the host refuses to open one because there is nothing to merge, the change was merged by
other means: its commit is looked for on the target branch.
"""

from __future__ import annotations

from dataclasses import replace

from kardinal.promotion.api.promotion_step import PullRequestStatus
from kardinal.promotion.steps.pull_request_text import labels_of, waiting_message
from kardinal.scm import NewPullRequest, NothingToMerge, PullRequest
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.assignments import assign
from kardinal_agent.steps.base import Announcement, Done, StepContext, StepResult
from kardinal_agent.steps.pull_requests import own_pull_request, text_of

__all__ = ["PULL_REQUEST_OPENED", "OpenPullRequest"]

PULL_REQUEST_OPENED = "PullRequestOpened"
"""The reason of the Event about a new pull request."""


class OpenPullRequest:
    async def run(self, context: StepContext) -> StepResult:
        remote = await context.remote()
        own = await own_pull_request(context, remote.proposals)
        changed = context.facts.changed is not False
        # After a merge by squash there seems to be nothing to change, because the squashed commit has no trailers.
        if own is not None and (own.state == "merged" or (changed and own.state == "closed")):
            return _done(own, context)
        if not changed:
            return Done("nothing to change: no pull request is needed")
        if context.facts.merged_commit is not None:
            return Done("merged already")
        return await _open(context, remote)


async def _open(context: StepContext, remote: Remote) -> Done:
    try:
        opened = await remote.proposals.open(await _new(context, remote))
    except NothingToMerge:
        merged = await remote.repository.find(context.target, context.message.trailers)
        if merged is None:
            raise
        return Done("merged already", update={"commit": merged, "promoted_at": context.now})
    assigned, flag = await assign(context, remote, opened)
    done = _done(opened, context)
    announcement = Announcement(PULL_REQUEST_OPENED, f"Opened {opened.url}: {opened.title}")
    return replace(done, update={**done.update, **assigned}, announcement=announcement, flag=flag)


def _done(pull_request: PullRequest, context: StepContext) -> Done:
    noted = PullRequestStatus(number=pull_request.number, url=pull_request.url, branch=context.branch)
    return Done(waiting_message(pull_request.url), update={"pull_request": noted, "pr_url": pull_request.url})


async def _new(context: StepContext, remote: Remote) -> NewPullRequest:
    spec = context.step.spec
    asked = spec.git.pull_request
    text = await text_of(context, remote.repository, context.status.diff)
    return NewPullRequest(
        title=text.title,
        body=text.body,
        head=context.branch,
        base=context.target,
        labels=labels_of(context.bundle),
        draft=asked is not None and asked.draft,
        environment=spec.environment,
        bundle=context.bundle.metadata.name,
        pipeline=spec.pipeline,
    )
