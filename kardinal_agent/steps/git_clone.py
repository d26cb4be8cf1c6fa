"""`git-clone`: open the tree of the target branch from the mirror, and remember which commit the edits start from."""

from __future__ import annotations

from kardinal_agent.steps.base import Done, StepContext, StepResult

__all__ = ["GitClone"]


class GitClone:
    async def run(self, context: StepContext) -> StepResult:
        head = await (await context.remote()).repository.head(context.target)
        return Done(f"{context.target} is at {head.commit[:12]}", outputs={"commit": head.commit})
