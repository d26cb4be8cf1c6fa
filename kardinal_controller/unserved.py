"""Say of a PromotionStep that no agent takes it: the shard of its environment is served by none, or by another name.

An agent sees the steps of its shard alone and writes a state as soon as it takes one, so a step that has none after a
minute waits for an agent that is not there. The condition stands in the status, which a restart neither repeats nor
forgets; the agent that takes the step takes it off with its first write.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from kardinal.api import PROMOTION_STEP
from kardinal.api.promotion_step import NO_AGENT
from kardinal.objects import JsonObject, Key
from kardinal.objects.conditions import find_condition, set_condition
from kardinal.objects.suggestions import nearest
from kardinal.runtime import Clock, EventRecorder, Informer, Result, Source, StatusWriter, Watch
from kardinal.runtime.finalizers import Patience, is_being_deleted
from kardinal.runtime.predicates import deleted, generation_changed, metadata_changed, status_changed

__all__ = ["UnservedReconciler"]

PATIENCE = timedelta(minutes=1)
"""How long an agent has to take a step, since this process has seen it."""

_READY = "RepositoryReady-"
"""The condition of a Pipeline that the agent of a shard writes begins so, and ends in the shard."""


class UnservedReconciler:
    """Writes the condition NoAgent of PromotionSteps that have a shard."""

    def __init__(
        self, steps: Informer, pipelines: Informer, *, status: StatusWriter, recorder: EventRecorder, clock: Clock
    ) -> None:
        self._steps = steps
        self._pipelines = pipelines
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._patience = Patience(PATIENCE, clock=clock)

    def sources(self) -> Sequence[Source]:
        changes = generation_changed | metadata_changed("deletionTimestamp") | status_changed("state")
        return [Watch(self._steps, when=changes & ~deleted)]

    async def reconcile(self, key: Key) -> Result:
        step = self._steps.get(*key)
        if step is None or not step["spec"].get("shard") or is_being_deleted(step):
            self._patience.forget(key)
            return Result()
        status = step.get("status") or {}
        if status.get("state"):
            self._patience.forget(key)
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
        # An agent that takes the step meanwhile has written another status, and this one is refused.
        changed = {**status, "message": message, "conditions": conditions}
        await self._status.write(PROMOTION_STEP, step, changed, shared=True)
        if find_condition(status, NO_AGENT) is None:
            self._recorder.event(step, type="Warning", reason=NO_AGENT, note=message)
        return Result()

    async def _taken(self, step: JsonObject, status: JsonObject) -> Result:
        """Take the condition off where an agent has left it."""
        if find_condition(status, NO_AGENT) is not None:
            kept = [each for each in status["conditions"] if each["type"] != NO_AGENT]
            await self._status.write(PROMOTION_STEP, step, {**status, "conditions": kept}, shared=True)
        return Result()

    def _message(self, step: JsonObject) -> str:
        spec, namespace = step["spec"], step["metadata"]["namespace"]
        shard, pipeline = spec["shard"], self._pipelines.get(namespace, spec["pipeline"])
        near = nearest(shard, _reported(pipeline) - {shard}) if pipeline is not None else None
        meant = f" (did you mean {near}?)" if near else ""
        return (
            f"no agent serves shard {shard}: none has taken this promotion within a minute; start one with "
            f"--shard={shard}, or correct the shard of environment {spec['environment']} in Pipeline "
            f"{spec['pipeline']}{meant}"
        )


def _reported(pipeline: JsonObject) -> set[str]:
    """Return the shards whose agents have said something about a Pipeline."""
    conditions = (pipeline.get("status") or {}).get("conditions") or ()
    return {each["type"].removeprefix(_READY) for each in conditions if each["type"].startswith(_READY)}
