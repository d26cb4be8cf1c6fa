"""`git-clone`: open the tree of the target branch from the mirror, and remember which commit the edit starts from."""

from __future__ import annotations

from kardinal_agent.steps.base import Done, Outcome, StepContext

__all__ = ["GitClone"]


class GitClone:
    async def run(self, context: StepContext) -> Outcome:
        branch = context.step.spec.git.branch
        head = await (await context.remote()).repository.head(branch)
        return Done(f"{branch} is at {head.commit[:12]}", outputs={"commit": head.commit})
