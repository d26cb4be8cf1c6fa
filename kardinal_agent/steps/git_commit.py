"""`git-commit`: settle what the commit says. It is made when it lands, because only then its parent is known."""

from __future__ import annotations

from kardinal_agent.steps.base import Done, StepContext, StepResult

__all__ = ["GitCommit"]


class GitCommit:
    async def run(self, context: StepContext) -> StepResult:
        return Done(context.message.subject)
