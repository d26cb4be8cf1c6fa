"""Validate Pipelines: the status says whether Bundles can be translated with them.

A Pipeline that cannot be translated, for example because its environments form a cycle, is reported when it is applied,
not when the first Bundle fails; the check is the same as in translation. A Pipeline that writes to the same place as
another Pipeline of its namespace still promotes and gets the condition SharedPath. One that was stored with durations
of more than a year promotes as well, and gets the condition DurationTooLong.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.clock import Clock
from kardinal.models.base import Condition
from kardinal.objects import Key
from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal.objects.text import cut
from kardinal.promotion.api import Pipeline, set_condition
from kardinal.promotion.api.overlong import overlong
from kardinal.promotion.api.pipeline import PipelineSpec
from kardinal.promotion.kinds import PIPELINE
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import validate
from kardinal.runtime import EventRecorder, Informer, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import generation_changed
from kardinal_controller.pipelines.sharing import SharedPaths

SHARED_PATH = "SharedPath"
DURATION_TOO_LONG = "DurationTooLong"

__all__ = ["ValidationReconciler"]


class ValidationReconciler:
    """Write the condition Ready of Pipelines, and record an Event for each spec that cannot be translated."""

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
        """Return the conditions with that of a warning, which is present only while it is true."""
        if not message:
            return tuple(condition for condition in conditions if condition.type != type_)
        return set_condition(conditions, type_, "True", reason=type_, message=message, now=self._clock.now())
