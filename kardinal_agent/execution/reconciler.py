"""The reconciler of PromotionSteps: a run observes, decides and acts until an action ends it.

    observe.py    facts: the status, the gates, the time
    rules.py      their projection: superseded, admitted, the step that is left out
    decide.py     the next action, with its reason and message
    effects.py    the effect of the action
    status.py     the status after it
    events.py     the Events and metrics of the change

`watches` has the events that cause a run. A Verified promotion is observed as long as another one depends on it
(`verified`); a promotion that has ended, begins another attempt or is deleted has its proposal withdrawn (`cleanup`).
"""

from __future__ import annotations

import structlog

from kardinal.objects import Key
from kardinal.promotion.translation.recorded import Untraceable
from kardinal.runtime import Informer, Result
from kardinal.runtime.finalizers import is_being_deleted
from kardinal_agent.execution.cleanup import Cleanup
from kardinal_agent.execution.decide import Action, Run, Skip, Wait, decide, reason_of
from kardinal_agent.execution.draft import StepDeleted
from kardinal_agent.execution.effects import Effects
from kardinal_agent.execution.ownership import Ownership, StepRefusals
from kardinal_agent.execution.rules import PlannedSequence, project
from kardinal_agent.execution.tools import Tools
from kardinal_agent.execution.verified import VerifiedSteps
from kardinal_agent.execution.watches import is_under_way

__all__ = ["PromotionReconciler"]

log = structlog.get_logger(__name__)


class PromotionReconciler:
    """Takes each promotion as far as it can go now."""

    def __init__(
        self,
        tools: Tools,
        *,
        steps: Informer,
        ownership: Ownership,
        refusals: StepRefusals,
        verified: VerifiedSteps,
        cleanup: Cleanup,
    ) -> None:
        self._tools = tools
        self._steps = steps
        self._ownership = ownership
        self._refusals = refusals
        self._verified = verified
        self._cleanup = cleanup

    async def reconcile(self, key: Key) -> Result:
        raw = self._steps.get(*key)
        memory = self._tools.memory
        if raw is None:
            return Result()
        if raw["spec"].get("shard") != self._tools.shard:
            memory.whole.drop(key)
            return Result()
        if is_being_deleted(raw):
            memory.attempt.drop(key)
            memory.proof.drop(key)
            return await self._cleanup.run(raw)
        if not is_under_way(raw):
            memory.attempt.drop(key)
            return _earlier(await self._cleanup.run(raw), await self._verified.look(raw))
        self._verified.end(key)
        try:
            owned = self._ownership.trace(raw)
        except Untraceable as error:
            self._tools.merges.release(key)
            memory.proof.drop(key)
            return await self._refusals.refuse(raw, str(error))
        self._refusals.end(key)
        left = await self._cleanup.before_attempt(raw, owned.step)
        if isinstance(left, Result):
            return left
        return await _run(Effects(self._tools, raw, owned, kept=left))


async def _run(effects: Effects) -> Result:
    """Take a promotion as far as it can go now; the result has the time of the next run without an event."""
    try:
        effects.begin()
        result: Result | None = None
        while result is None:
            facts = effects.observe()
            projection = project(facts, effects.plan)
            action = decide(facts, projection)
            log.debug("decided", **_told(action, effects.plan))
            result = await effects.carry_out(action, facts, projection)
        return result
    except StepDeleted:
        return effects.end_deleted()
    finally:
        effects.close()


def _told(action: Action, plan: PlannedSequence) -> dict[str, object]:
    """Return the fields of an action for the log: its name, its reason, and its step or kind of wait."""
    told: dict[str, object] = {"action": type(action).__name__, "reason": reason_of(action)}
    if isinstance(action, Wait):
        told["kind"] = action.kind.value
    if isinstance(action, Run | Skip):
        told["step"] = plan.sequence[action.index].name
    return told


def _earlier(one: Result, other: Result) -> Result:
    """Return the result that is due first."""
    waits = [result.requeue_after for result in (one, other) if result.requeue_after is not None]
    return Result(requeue_after=min(waits, default=None))
