"""The Bundle reconciler: from a new Bundle to its Graph, and from the steps of the Graph to the status of the Bundle.

It is the only writer of Bundle status, and nothing else creates or deletes the Graphs of Bundles. It holds no rule:
`decide` says what to do, one thing at a time, and this module does it. Every run starts from what is observed, so a
crash between any two lines costs a run and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from kardinal.api import BUNDLE
from kardinal.objects import JsonObject, Key
from kardinal.runtime import Clock, EventRecorder, Result, Source, StatusWriter
from kardinal.translation.errors import PromotionError
from kardinal_controller.bundles.decide import Create, Delete, Extend, Wait, WriteStatus, decide
from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.observation import Observer
from kardinal_controller.bundles.transitions import CountBundle, Effect, EmitEvent, effects
from kardinal_controller.bundles.watches import bundle_sources
from kardinal_controller.caches import Caches
from kardinal_controller.metrics import ControlPlaneMetrics

__all__ = ["BundleReconciler"]


class BundleReconciler:
    """Starts Bundles and follows them."""

    def __init__(
        self,
        caches: Caches,
        graphs: GraphKeeper,
        *,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        metrics: ControlPlaneMetrics,
    ) -> None:
        self._caches = caches
        self._graphs = graphs
        self._status = status
        self._recorder = recorder
        self._metrics = metrics
        self._observer = Observer(caches, graphs, clock=clock)
        self._write_by: dict[Key, float] = {}

    def sources(self) -> Sequence[Source]:
        return bundle_sources(self._caches)

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.bundles.get(*key)
        if current is None:
            self._write_by.pop(key, None)
            return Result()
        observation = self._observer.observe(current, write_by=self._write_by.get(key))
        while True:
            match decide(observation):
                case Create(pipeline):
                    outcome = await _outcome(self._graphs.create(pipeline, observation.bundle))
                    observation = replace(observation, outcome=outcome)
                case Extend(graph, pipeline):
                    outcome = await _outcome(self._graphs.extend(graph, pipeline, observation.bundle))
                    observation = replace(observation, outcome=outcome)
                case WriteStatus(status):
                    await self._status.write(BUNDLE, current, status.to_json())
                    self._carry_out(current, effects(observation.bundle, before=observation.stored, after=status))
                    observation = replace(observation, stored=status)
                case Delete(graph):
                    self._write_by.pop(key, None)
                    await self._graphs.delete(graph)
                    return Result()
                case Wait(until):
                    if until is None:
                        self._write_by.pop(key, None)
                        return Result()
                    self._write_by[key] = until
                    return Result(requeue_after=timedelta(seconds=until - observation.monotonic))

    def _carry_out(self, current: JsonObject, wanted: Iterable[Effect]) -> None:
        for effect in wanted:
            match effect:
                case EmitEvent():
                    self._recorder.event(current, type=effect.type, reason=effect.reason, note=effect.note)
                case CountBundle():
                    self._metrics.bundles_created.labels(effect.pipeline, effect.source).inc()


async def _outcome(translation: Awaitable[JsonObject]) -> JsonObject | PromotionError:
    """Return the Graph, or what its author has to fix; every other error is raised and tried again."""
    try:
        return await translation
    except PromotionError as error:
        return error
