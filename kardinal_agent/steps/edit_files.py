"""The effect of all steps that change files: plan the edits so far on the opened tree.

Nothing is written to Git. Planning finds errors in the files before the first effect, and gives the hash of the changed
tree. The landing runs the same edits again on the head of the branch at that time.
"""

from __future__ import annotations

from kardinal_agent.errors import StepFailed
from kardinal_agent.steps.base import Announcement, Done, StepContext, StepResult

__all__ = ["EFFECT_UNKNOWN", "EditFiles"]

EFFECT_UNKNOWN = "EffectUnknown"
"""The reason of the Event about edits that may have no effect."""


class EditFiles:
    async def run(self, context: StepContext) -> StepResult:
        base = context.facts.base_commit
        if base is None:
            raise StepFailed("NoTree", "no step before it has opened a tree: its commit is missing in status.outputs")
        plan = await (await context.remote()).repository.plan(base, context.edit)
        notes = context.surroundings.notes
        changed = ", ".join(change.path for change in plan.changes)
        doubts = [str(finding) for finding in notes.findings]
        return Done(
            "; ".join([f"changes {changed}" if changed else "nothing to change", *doubts]),
            outputs={"mirrors": notes.mirrors} if notes.mirrors else {},
            update={"tree": plan.tree, "diff": plan.diff or None},
            announcement=Announcement(EFFECT_UNKNOWN, "; ".join(doubts), warning=True) if doubts else None,
        )
