"""`git-commit`: settle what the commit says. It is made when it lands, because only then its parent is known."""

from __future__ import annotations

from kardinal.steps.commit_plan import commit_message
from kardinal_agent.steps.base import Done, Outcome, StepContext

__all__ = ["GitCommit"]


class GitCommit:
    async def run(self, context: StepContext) -> Outcome:
        return Done(commit_message(context.step, context.bundle).subject)
