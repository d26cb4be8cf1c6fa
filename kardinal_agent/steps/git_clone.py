"""`git-clone`: open the tree of the target branch from the mirror, and remember which commit the edits start from."""

from __future__ import annotations

from kardinal.git import NO_COMMIT, BranchNotFound
from kardinal_agent.steps.base import Done, StepContext, StepResult

__all__ = ["GitClone"]


class GitClone:
    async def run(self, context: StepContext) -> StepResult:
        repository, spec = (await context.remote()).repository, context.step.spec
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
