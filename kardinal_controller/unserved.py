"""Write a condition to a PromotionStep that no agent takes, because no agent serves the shard of its environment.

An agent sees only the PromotionSteps of its shard, and writes a state as soon as it takes one. A PromotionStep without
a state after a minute therefore waits for a missing agent, or its shard is misspelt. The condition is kept in the
status, so a restart neither repeats nor loses it. The agent that takes the PromotionStep removes it with its first
write.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key
from kardinal.objects.conditions import find_condition, set_condition
from kardinal.objects.suggestions import nearest
from kardinal.promotion.api.promotion_step import NO_AGENT
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.runtime import EventRecorder, Informer, KeyMemory, Result, Source, StatusWriter, Watch
from kardinal.runtime.finalizers import Patience, is_being_deleted
from kardinal.runtime.predicates import generation_changed, metadata_changed, status_changed

__all__ = ["UnservedReconciler"]

UNSERVED_AFTER = timedelta(minutes=1)
"""The time for an agent to take a PromotionStep, from when this process has first seen it."""

_READY = "RepositoryReady-"
"""The beginning of the type of the condition that the agent of a shard writes to Pipelines: `RepositoryReady-eu`."""


class UnservedReconciler:
    """Writes the condition NoAgent to PromotionSteps with a shard."""

    def __init__(
        self, steps: Informer, pipelines: Informer, *, status: StatusWriter, recorder: EventRecorder, clock: Clock
    ) -> None:
        self._steps = steps
        self._pipelines = pipelines
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self.memory = KeyMemory(steps)
        self._patience = Patience(UNSERVED_AFTER, clock=clock, memory=self.memory)

    def sources(self) -> Sequence[Source]:
        changes = generation_changed | metadata_changed("deletionTimestamp") | status_changed("state")
        return [Watch(self._steps, when=changes)]

    async def reconcile(self, key: Key) -> Result:
        step = self._steps.get(*key)
        if step is None or not step["spec"].get("shard") or is_being_deleted(step):
            return Result()
        status = step.get("status") or {}
        if status.get("state"):
            self.memory.drop(key)
            return await self._taken(step, status)
        if left := self._patience.left(step):
            return Result(requeue_after=left)
        message = self._message(step)
        conditions = set_condition(
            status.get("conditions") or (),
            NO_AGENT,
            "True",
            reason=NO_AGENT,
            message=message,
            now=self._clock.now(),
            observed_generation=step["metadata"].get("generation"),
        )
        # If an agent takes the PromotionStep meanwhile, its write comes first, and this one is refused as a conflict.
        changed = {**status, "message": message, "conditions": conditions}
        await self._status.write(PROMOTION_STEP, step, changed, shared=True)
        if find_condition(status, NO_AGENT) is None:
            self._recorder.event(step, type="Warning", reason=NO_AGENT, note=message)
        return Result()

    async def _taken(self, step: JsonObject, status: JsonObject) -> Result:
        """Remove the condition if the agent has left it there."""
        if find_condition(status, NO_AGENT) is not None:
            kept = [each for each in status["conditions"] if each["type"] != NO_AGENT]
            await self._status.write(PROMOTION_STEP, step, {**status, "conditions": kept}, shared=True)
        return Result()

    def _message(self, step: JsonObject) -> str:
        spec = step["spec"]
        namespace = step["metadata"]["namespace"]
        shard = spec["shard"]
        pipeline = self._pipelines.get(namespace, spec["pipeline"])
        near = nearest(shard, _reported(pipeline) - {shard}) if pipeline is not None else None
        meant = f" (did you mean {near}?)" if near else ""
        return (
            f"no agent serves shard {shard}: none has taken this promotion within a minute; start one with "
            f"--shard={shard}, or correct the shard of environment {spec['environment']} in Pipeline "
            f"{spec['pipeline']}{meant}"
        )


def _reported(pipeline: JsonObject) -> set[str]:
    """Return the shards whose agents have written a condition to the Pipeline."""
    conditions = (pipeline.get("status") or {}).get("conditions") or ()
    return {each["type"].removeprefix(_READY) for each in conditions if each["type"].startswith(_READY)}
