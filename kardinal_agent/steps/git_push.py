"""`git-push`: land the change on the target branch, or on a branch of its own where a pull request follows.

The commit is found again by its trailers, so that running twice lands once. Where a pull request follows, the target
branch is looked at first: a person may have merged while no agent was running.

The trap: a branch of an earlier Bundle of the same name may still be there. It is ours by name and not by uid, so it is
removed and made again.
"""

from __future__ import annotations

from kardinal.api import names
from kardinal.git import BranchNotFound, Landed, PushRejected, Repository
from kardinal.steps.commit_message import CommitMessage
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.base import Done, StatusFields, StepContext, StepResult

__all__ = ["GitPush"]


class GitPush:
    async def run(self, context: StepContext) -> StepResult:
        remote = await context.remote()
        if context.step.spec.branch is not None:
            await remote.repository.ensure_branch(context.target, _begin(context))
        if context.proposes:
            return await _propose(context, remote)
        landed = await remote.repository.land(context.target, context.edit, context.message, signer=remote.signer)
        return _landed(landed, context, context.target)


def _begin(context: StepContext) -> CommitMessage:
    """Return the message of the commit without files that an environment's own branch begins with."""
    spec = context.step.spec
    return CommitMessage(subject=f"Begin the branch of {spec.environment} of {spec.pipeline}")


async def _propose(context: StepContext, remote: Remote) -> StepResult:
    repository, signer = remote.repository, remote.signer
    target, branch, edit, message = context.target, context.branch, context.edit, context.message
    merged = await repository.find(target, message.trailers)
    if merged is not None:
        return Done(
            f"{merged[:12]} is on {target} already",
            outputs={"merged": merged},
            update={"commit": merged, "promoted_at": context.now},
        )
    try:
        landed = await repository.propose(branch, base=target, edit=edit, message=message, signer=signer)
    except PushRejected:
        if not await _is_leftover(repository, branch, message):
            raise
        await repository.delete_branch(branch)
        landed = await repository.propose(branch, base=target, edit=edit, message=message, signer=signer)
    return _landed(landed, context, branch if landed.changed else target)


async def _is_leftover(repository: Repository, branch: str, message: CommitMessage) -> bool:
    """Return whether the branch was made for a Bundle of this name that is no more."""
    by_name = {key: value for key, value in message.trailers.items() if key != names.TRAILER_UID}
    try:
        return await repository.find(branch, by_name) is not None
    except BranchNotFound:
        return False


def _landed(landed: Landed, context: StepContext, branch: str) -> Done:
    changed = landed.changed
    update: StatusFields = {"commit": landed.commit, "tree": landed.tree}
    if branch == context.target:
        update["promoted_at"] = context.now
    return Done(
        f"{landed.commit[:12]} is on {branch}" if changed else f"nothing to change on {branch}",
        outputs={"changed": True, "branch": branch} if changed else {"changed": False},
        update=update,
    )
