"""The Pipeline reconciler: says whether a Pipeline can be translated, and keeps its history short.

A Pipeline that cannot be translated is found out when it is applied, not when the first Bundle fails on it; the check
is the one that translation makes. Finished Bundles beyond `historyLimit` are deleted, oldest first; their Graphs go
with them by ownership, and what an environment runs stays, because rollback and gates ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.api import BUNDLE, PIPELINE, Bundle, Pipeline, set_condition
from kardinal.api.pipeline import PipelineStatus
from kardinal.kube import Client, Conflict, NotFound
from kardinal.objects import JsonObject, Key, key_of
from kardinal.runtime import Clock, Event, EventRecorder, Result, Source, StatusWriter, Watch
from kardinal.translation.repository import Features
from kardinal.translation.translate import validate
from kardinal_controller.bundles.supersession import surplus
from kardinal_controller.caches import Caches, pipeline_label

__all__ = ["PipelineReconciler"]


class PipelineReconciler:
    """Tells the authors of Pipelines what is wrong with them."""

    def __init__(
        self,
        caches: Caches,
        client: Client,
        *,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        features: Features,
    ) -> None:
        self._caches = caches
        self._client = client
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._features = features

    def sources(self) -> Sequence[Source]:
        return [
            Watch(self._caches.pipelines),
            Watch(self._caches.bundles, map=self._of_bundle, when=_phase_changed),
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.pipelines.get(*key)
        if current is None or "deletionTimestamp" in current["metadata"]:
            return Result()
        pipeline = Pipeline.model_validate(current)
        await self._judge(current, pipeline)
        await self._tidy(pipeline)
        return Result()

    async def _judge(self, current: JsonObject, pipeline: Pipeline) -> None:
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
        status = PipelineStatus(observed_generation=pipeline.metadata.generation or None, conditions=conditions)
        await self._status.write(PIPELINE, current, status.to_json())
        if problems and (before is None or before.observed_generation != pipeline.metadata.generation):
            self._recorder.event(current, type="Warning", reason=problems[0].reason, note=message)

    async def _tidy(self, pipeline: Pipeline) -> None:
        """Delete the finished Bundles that are too many."""
        namespace = pipeline.metadata.namespace
        stored = self._caches.bundles_of(namespace, pipeline.metadata.name)
        if len(stored) <= pipeline.spec.history_limit:
            return
        bundles = [Bundle.model_validate(each) for each in stored if not self._is_leaving(each)]
        for bundle in surplus(bundles, limit=pipeline.spec.history_limit):
            try:
                await self._client.delete(BUNDLE, bundle.metadata.name, namespace, uid=bundle.metadata.uid)
            except (NotFound, Conflict):
                continue

    def _is_leaving(self, bundle: JsonObject) -> bool:
        """Whether a Bundle is being deleted, or superseded with steps that have not finished yet."""
        superseded = bundle.get("status", {}).get("phase") == "Superseded"
        return "deletionTimestamp" in bundle["metadata"] or (
            superseded and self._caches.graphs.get(*key_of(bundle)) is not None
        )

    def _of_bundle(self, bundle: JsonObject) -> Iterable[Key]:
        pipeline = self._caches.pipeline(bundle["metadata"]["namespace"], pipeline_label(bundle))
        return [] if pipeline is None else [key_of(pipeline)]


def _phase_changed(event: Event) -> bool:
    if event.old is None or event.new is None:
        return event.new is not None
    return bool(event.old.get("status", {}).get("phase") != event.new.get("status", {}).get("phase"))
