"""The Bundle reconciler: from a new Bundle to its Graph, and from the steps of the Graph to the status of the Bundle.

It is the only writer of Bundle status, and nothing else creates or deletes the Graphs of Bundles. It holds no rule:
`decide` says what to do, one thing at a time, and this module does it. Every run starts from what is observed, so a
crash between any two lines costs a run and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from kardinal.api import BUNDLE, Pipeline
from kardinal.api.bundle import GraphRecord
from kardinal.objects import JsonObject, Key
from kardinal.runtime import Clock, EventRecorder, Result, Source, StatusWriter
from kardinal.translation.errors import PromotionError
from kardinal.translation.recorded import spec_hash
from kardinal_controller.bundles.decide import (
    Create,
    Delete,
    Extend,
    Hold,
    LookUp,
    Note,
    RollBack,
    Wait,
    WriteStatus,
    decide,
)
from kardinal_controller.bundles.failures import DueRollback
from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.observation import Observation, Observer
from kardinal_controller.bundles.statuses import recorded
from kardinal_controller.bundles.tags import Tags
from kardinal_controller.bundles.transitions import CountBundle, CountRollback, Effect, EmitEvent, effects
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
        tags: Tags | None = None,
    ) -> None:
        self._caches = caches
        self._graphs = graphs
        self._status = status
        self._recorder = recorder
        self._metrics = metrics
        self._tags = tags
        self._observer = Observer(caches, graphs, clock=clock, tags=tags)
        self._write_by: dict[Key, float] = {}

    def sources(self) -> Sequence[Source]:
        found = bundle_sources(self._caches, policy_namespaces=self._graphs.policy_namespaces)
        return [*found, self._tags.changes] if self._tags is not None else found

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.bundles.get(*key)
        if current is None:
            self._write_by.pop(key, None)
            self._observer.forget(key)
            return Result()
        observation = self._observer.observe(current, write_by=self._write_by.get(key))
        while True:
            match decide(observation):
                case Note(status):
                    self._observer.note(current, status)
                    current = await self._status.write(BUNDLE, current, status.to_json()) or current
                    self._carry_out(current, effects(observation.bundle, before=observation.stored, after=status))
                    observation = self._observer.observe(current, write_by=self._write_by.get(key))
                case LookUp():
                    return self._look_up(key)
                case Create(pipeline):
                    self._observer.note_start(current)
                    current, observation = await self._create(current, observation, pipeline)
                    observation = replace(observation, siblings=self._observer.siblings(current))
                case Extend(graph, pipeline):
                    current, observation = await self._extend(current, observation, graph, pipeline)
                    observation = replace(observation, siblings=self._observer.siblings(current))
                case RollBack(due):
                    observation = await self._roll_back(observation, due)
                    observation = replace(observation, siblings=self._observer.siblings(current))
                case WriteStatus(status):
                    # Nothing was awaited since the siblings were read: when they are decided about, they see this.
                    self._observer.note(current, status)
                    await self._status.write(BUNDLE, current, status.to_json())
                    self._carry_out(current, effects(observation.bundle, before=observation.stored, after=status))
                    observation = replace(observation, stored=status)
                case Delete(graph):
                    self._write_by.pop(key, None)
                    await self._graphs.delete(graph)
                    return Result()
                case Hold(until):
                    return Result(requeue_after=timedelta(seconds=until - observation.monotonic))
                case Wait(until):
                    again = self._check_tags(key, observation)
                    if until is None:
                        self._write_by.pop(key, None)
                        return Result(requeue_after=again)
                    self._write_by[key] = until
                    return Result(requeue_after=timedelta(seconds=until - observation.monotonic))

    def _look_up(self, key: Key) -> Result:
        """Have the tags of a Bundle looked up; the answer brings the next run."""
        if self._tags is not None:
            self._tags.ask(key)
        return Result()

    def _check_tags(self, key: Key, observation: Observation) -> timedelta | None:
        """Have tags looked up again for what is about to start; returns when to ask again what was not answered."""
        if self._tags is None or not observation.unchecked:
            return None
        return self._tags.check(key, observation.unchecked)

    async def _create(
        self, current: JsonObject, observation: Observation, pipeline: Pipeline
    ) -> tuple[JsonObject, Observation]:
        """Create the Graph; its hash is recorded before, so that it is known again after a crash."""
        try:
            wanted = await self._graphs.translated(pipeline, observation.bundle)
            record = GraphRecord(next_hash=spec_hash(wanted))
            current, observation = await self._record(current, observation, record)
            outcome: JsonObject | PromotionError = await self._graphs.create(wanted, observation.bundle)
        except PromotionError as error:
            outcome = error
        return current, replace(observation, outcome=outcome)

    async def _extend(
        self, current: JsonObject, observation: Observation, graph: JsonObject, pipeline: Pipeline
    ) -> tuple[JsonObject, Observation]:
        """Extend the Graph where that is needed; the hash of what it will be is recorded before."""
        try:
            wanted = await self._graphs.extension(graph, pipeline, observation.bundle)
        except PromotionError as error:
            return current, replace(observation, outcome=error)
        if wanted["spec"] != graph["spec"]:
            before = observation.bundle.status.graph or recorded(graph)
            record = before.model_copy(update={"next_hash": spec_hash(wanted)})
            current, observation = await self._record(current, observation, record)
            wanted = await self._graphs.write(wanted)
        return current, replace(observation, outcome=wanted)

    async def _roll_back(self, observation: Observation, due: DueRollback) -> Observation:
        """Create a rollback; its name is that of the failure, so one that stands was made by a run that died since."""
        name = await self._graphs.create_rollback(due.manifest)
        status = observation.bundle.status
        entry = status.environments.get(due.environment) or observation.environments[due.environment]
        entries = {**status.environments, due.environment: entry.model_copy(update={"rolled_back_by": name})}
        noted = status.model_copy(update={"environments": entries})
        return replace(observation, bundle=observation.bundle.model_copy(update={"status": noted}))

    async def _record(
        self, current: JsonObject, observation: Observation, record: GraphRecord
    ) -> tuple[JsonObject, Observation]:
        """Write what is believed about the Graph, with what tags were, and nothing else of the status."""
        bundle = observation.bundle
        update = {"graph": record, "artifacts": bundle.status.artifacts}
        stored = observation.stored.model_copy(update=update)
        current = await self._status.write(BUNDLE, current, stored.to_json()) or current
        noted = bundle.model_copy(update={"status": bundle.status.model_copy(update=update)})
        return current, replace(observation, bundle=noted, stored=stored)

    def _carry_out(self, current: JsonObject, wanted: Iterable[Effect]) -> None:
        for effect in wanted:
            match effect:
                case EmitEvent():
                    self._recorder.event(current, type=effect.type, reason=effect.reason, note=effect.note)
                case CountBundle():
                    namespace = current["metadata"]["namespace"]
                    self._metrics.bundle_created(effect.pipeline, effect.source, namespace=namespace)
                case CountRollback():
                    namespace = current["metadata"]["namespace"]
                    self._metrics.rollback(effect.environment, effect.trigger, namespace=namespace)
