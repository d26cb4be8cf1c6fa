"""`git-commit` and `git-push`: land the change on the target branch, or push it to a branch for a pull request.

The commit is made at the landing, when its parent is known; `git-commit` fixes its message.
The commit is recognised by its trailers, so that a repeated run lands it once. Before a pull request, the target branch
is searched for it, too: a person may have merged it while no agent was running.

The trap: the branch of an earlier Bundle of the same name may still exist. It has our name and another uid in its
trailers, so it is deleted and created again.
"""

from __future__ import annotations

from kardinal.git import BranchNotFound, Landed, PushRejected, Repository
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.git_names import TRAILER_UID
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.base import Done, StatusFields, StepContext, StepResult

__all__ = ["GitCommit", "GitPush"]


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
    """Return the message of the empty first commit of an environment's own branch."""
    spec = context.step.spec
    return CommitMessage(subject=f"Begin the branch of {spec.environment} of {spec.pipeline}")


async def _propose(context: StepContext, remote: Remote) -> StepResult:
    repository = remote.repository
    signer = remote.signer
    target = context.target
    branch = context.branch
    edit = context.edit
    message = context.message
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
    """Return whether the branch was made for a deleted Bundle of the same name."""
    by_name = {key: value for key, value in message.trailers.items() if key != TRAILER_UID}
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


class GitCommit:
    async def run(self, context: StepContext) -> StepResult:
        return Done(context.message.subject)
