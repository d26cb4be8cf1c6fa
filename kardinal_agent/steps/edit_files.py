"""Every step that changes files: plan the edits so far on the tree that was opened.

Nothing is written yet. Planning finds what is wrong with the files before anything leaves the process, and says which
tree the change would give; landing runs the same edits again on whatever the branch holds by then.
"""

from __future__ import annotations

from kardinal_agent.errors import StepFailed
from kardinal_agent.steps.base import Done, StepContext, StepResult

__all__ = ["EditFiles"]


class EditFiles:
    async def run(self, context: StepContext) -> StepResult:
        base = context.facts.base_commit
        if base is None:
            raise StepFailed("NoTree", "no step before it has opened a tree: its commit is missing in status.outputs")
        plan = await (await context.remote()).repository.plan(base, context.edit)
        changed = ", ".join(change.path for change in plan.changes)
        message = f"changes {changed}" if changed else "nothing to change"
        return Done(message, update={"tree": plan.tree, "diff": plan.diff or None})
