"""`open-pr`: ask for the change to be merged, once.

A pull request of the proposal's branch that was opened since this promotion started is this promotion's own, whatever
has become of it: the process may have died between opening it and noting its number, and a person may have merged or
closed it meanwhile. An older one that has ended belongs to an earlier Bundle of the same name.
"""

from __future__ import annotations

from kardinal.api import names
from kardinal.api.promotion_step import PullRequestStatus
from kardinal.git import Repository
from kardinal.scm import NewPullRequest, PullRequest, PullRequests
from kardinal.steps.commit_plan import edit_of
from kardinal.steps.kustomization import ImageChange, image_changes
from kardinal.steps.pull_request_text import LABEL, Proposal, body, title
from kardinal_agent.steps.base import Announcement, Done, Outcome, StepContext
from kardinal_agent.steps.wait_for_merge import waiting_message

__all__ = ["OpenPullRequest"]


class OpenPullRequest:
    async def run(self, context: StepContext) -> Outcome:
        pushed = context.outputs("git-push")
        if pushed.get("changed") is False:
            return Done("nothing to change: no pull request is needed")
        remote = await context.remote()
        branch = names.branch_name(context.bundle.metadata.name, context.step.spec.environment)
        ours = await _opened_before(remote.proposals, branch, context)
        if ours is not None:
            return _done(ours, branch)
        if "merged" in pushed:
            return Done("merged already")
        opened = await remote.proposals.open(await _new(context, remote.repository, branch))
        return _done(opened, branch, Announcement("PullRequestOpened", f"Opened {opened.url}: {opened.title}"))


async def _opened_before(pull_requests: PullRequests, branch: str, context: StepContext) -> PullRequest | None:
    found = await pull_requests.find(branch)
    started = context.status.started_at
    if found is None or found.state == "open" or started is None or found.created_at < started:
        # An open one is adopted by opening it.
        return None
    return found


def _done(pull_request: PullRequest, branch: str, announcement: Announcement | None = None) -> Done:
    noted = PullRequestStatus(number=pull_request.number, url=pull_request.url, branch=branch)
    return Done(
        waiting_message(pull_request.url),
        update={"pull_request": noted, "pr_url": pull_request.url},
        announcement=announcement,
    )


async def _new(context: StepContext, repository: Repository, branch: str) -> NewPullRequest:
    spec = context.step.spec
    proposal = Proposal(
        pipeline=spec.pipeline,
        environment=spec.environment,
        bundle=context.bundle,
        gates=context.gates(),
        changes=await _changes(context, repository),
        merged_by_agent=context.merges_itself,
        now=context.now,
    )
    return NewPullRequest(
        title=title(proposal),
        body=body(proposal),
        head=branch,
        base=spec.git.branch,
        labels=(LABEL,),
        environment=spec.environment,
        bundle=context.bundle.metadata.name,
        pipeline=spec.pipeline,
    )


async def _changes(context: StepContext, repository: Repository) -> dict[str, list[ImageChange]]:
    edit = edit_of(context.step, context.bundle, context.sequence[: context.index])
    plan = await repository.plan((await repository.head(context.step.spec.git.branch)).commit, edit)
    return {change.path: image_changes(change.before, change.after) for change in plan.changes}
