"""`git-clone`: note the commit from which the edits start, or the commit of an input that they read.

The trees are read from the mirrors when an edit needs them.
"""

from __future__ import annotations

from kardinal.git import NO_COMMIT, BranchNotFound
from kardinal.promotion.sources.edit_sources import find_commit
from kardinal.promotion.steps.declaration import Role
from kardinal_agent.steps.base import Done, StepContext, StepResult

__all__ = ["GitClone"]


class GitClone:
    async def run(self, context: StepContext) -> StepResult:
        if context.planned.declaration.role is Role.INPUT:
            return await _open_input(context)
        repository = (await context.remote()).repository
        spec = context.step.spec
        if spec.branch is None:
            head = await repository.head(context.target)
            return Done(f"{context.target} is at {head.commit[:12]}", outputs={"commit": head.commit})
        source = await repository.head(spec.git.branch)
        try:
            base = (await repository.head(context.target)).commit
        except BranchNotFound:
            base = NO_COMMIT
        outputs = {"commit": base, "source": source.commit}
        return Done(f"{context.target} is rendered from {spec.git.branch} at {source.commit[:12]}", outputs=outputs)


async def _open_input(context: StepContext) -> StepResult:
    source, commit = await find_commit(context.step, context.planned, context.open_source)
    return Done(f"{source.place} is read at {commit[:12]}", outputs={"commit": commit})
