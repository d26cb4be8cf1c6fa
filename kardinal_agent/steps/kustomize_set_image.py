"""`kustomize-set-image`: plan the new images on the tree that was opened.

Nothing is written yet. Planning finds what is wrong with the overlay before anything leaves the process, and says which
tree the change would give; landing runs the same edit again on whatever the branch holds by then.
"""

from __future__ import annotations

from kardinal.steps.commit_plan import edit_of
from kardinal_agent.steps.base import Done, Outcome, StepContext

__all__ = ["KustomizeSetImage"]


class KustomizeSetImage:
    async def run(self, context: StepContext) -> Outcome:
        repository = (await context.remote()).repository
        edit = edit_of(context.step, context.bundle, context.sequence[: context.index + 1])
        plan = await repository.plan(context.outputs("git-clone")["commit"], edit)
        changed = ", ".join(change.path for change in plan.changes)
        return Done(f"changes {changed}" if changed else "nothing to change", update={"tree": plan.tree})
