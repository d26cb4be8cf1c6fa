"""Validate Pipelines: say in the status whether Bundles can be translated with them.

A Pipeline that cannot be translated is found out when it is applied, not when the first Bundle fails on it; the check
is the one that translation makes. One that writes where another Pipeline of its namespace writes, too, goes on and has
the condition SharedPath. One that was stored with durations of more than a year goes on as well, and has the condition
DurationTooLong.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.api import PIPELINE, Pipeline, set_condition
from kardinal.api.base import Condition
from kardinal.api.overlong import overlong
from kardinal.api.pipeline import PipelineSpec
from kardinal.objects import Key
from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal.objects.text import cut
from kardinal.runtime import Clock, EventRecorder, Informer, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import generation_changed
from kardinal.translation.repository import Features
from kardinal.translation.translate import validate
from kardinal_controller.pipelines.sharing import SharedPaths

SHARED_PATH = "SharedPath"
DURATION_TOO_LONG = "DurationTooLong"

__all__ = ["ValidationReconciler"]


class ValidationReconciler:
    """Writes the condition Ready of Pipelines, and an Event for each spec that cannot be translated."""

    def __init__(
        self,
        pipelines: Informer,
        *,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        features: Features,
    ) -> None:
        self._pipelines = pipelines
        self._sharing = SharedPaths(pipelines)
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._features = features

    def sources(self) -> Sequence[Source]:
        return [Watch(self._pipelines), Watch(self._pipelines, self._sharing.sharers, when=generation_changed)]

    async def reconcile(self, key: Key) -> Result:
        current = self._pipelines.get(*key)
        if current is None or "deletionTimestamp" in current["metadata"]:
            return Result()
        pipeline = Pipeline.model_validate(current)
        problems = validate(pipeline, features=self._features)
        message = "; ".join(str(problem) for problem in problems)
        before = pipeline.status.condition("Ready")
        conditions = set_condition(
            pipeline.status.conditions,
            "Ready",
            "False" if problems else "True",
            reason=problems[0].reason if problems else "Translatable",
            message=message,
            now=self._clock.now(),
            observed_generation=pipeline.metadata.generation or None,
        )
        warnings = {
            SHARED_PATH: self._sharing.message(current),
            DURATION_TOO_LONG: "; ".join(overlong(PipelineSpec, current.get("spec"), field="spec")),
        }
        for type_, warning in warnings.items():
            conditions = self._with_warning(conditions, type_, warning)
        status = pipeline.status.model_copy(
            update={"observed_generation": pipeline.metadata.generation or None, "conditions": conditions}
        )
        await self._status.write(PIPELINE, current, status.to_json(), shared=True)
        if problems and (before is None or before.observed_generation != pipeline.metadata.generation):
            self._recorder.event(current, type="Warning", reason=problems[0].reason, note=message)
        for type_, warning in warnings.items():
            told = pipeline.status.condition(type_)
            if warning and (told is None or told.message != cut(warning, MESSAGE_LIMIT)):
                self._recorder.event(current, type="Warning", reason=type_, note=warning)
        return Result()

    def _with_warning(self, conditions: tuple[Condition, ...], type_: str, message: str) -> tuple[Condition, ...]:
        """Return the conditions with that of a warning, which stands only while it is true."""
        if not message:
            return tuple(condition for condition in conditions if condition.type != type_)
        return set_condition(conditions, type_, "True", reason=type_, message=message, now=self._clock.now())
