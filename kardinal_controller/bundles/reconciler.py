"""The Bundle reconciler: from a new Bundle to its Graph, and from the steps of the Graph to the status of the Bundle.

It is the only writer of Bundle status, and nothing else creates or deletes the Graphs of Bundles. It holds no rule: it
carries out one decision of `decide`, observes again, and asks for the next decision. Every run starts from observed
facts, so a crash between any two lines costs one run and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

import structlog

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key
from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.bundle import BundleStatus, GraphRecord
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.translation.errors import GraphRefused, PromotionError
from kardinal.promotion.translation.recorded import spec_hash
from kardinal.runtime import EventRecorder, KeyMemory, Result, Source, StatusWriter
from kardinal_controller.bundles.decide import decide
from kardinal_controller.bundles.decisions import (
    Admit,
    Create,
    Decision,
    Delete,
    Extend,
    Leave,
    LookUp,
    Note,
    Report,
    RollBack,
    StartLater,
)
from kardinal_controller.bundles.events import CountBundle, CountRollback, Effect, EmitEvent, LogChange, effects
from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.observe import Facts, Observer, RunEffects
from kardinal_controller.bundles.rules import Projection, project
from kardinal_controller.bundles.status import recorded, status_of, write_at
from kardinal_controller.bundles.tags import Tags
from kardinal_controller.bundles.watches import bundle_sources
from kardinal_controller.caches import Caches
from kardinal_controller.graphs.accounts import ANSWER_SECONDS
from kardinal_controller.metrics import ControlPlaneMetrics

__all__ = ["BundleReconciler"]

log = structlog.get_logger(__name__)

_ASK_AGAIN = timedelta(seconds=ANSWER_SECONDS)
"""The interval at which to look again at a refused Graph: no event tells that an account has got a right."""


class BundleReconciler:
    """Creates the Graphs of Bundles, and writes the statuses of Bundles until they end."""

    def __init__(
        self,
        caches: Caches,
        graphs: GraphKeeper,
        *,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        metrics: ControlPlaneMetrics,
        memory: KeyMemory,
        tags: Tags | None = None,
    ) -> None:
        self._caches = caches
        self._graphs = graphs
        self._status = status
        self._recorder = recorder
        self._metrics = metrics
        self._tags = tags
        self._observer = Observer(caches, graphs, clock=clock, tags=tags, memory=memory)
        self._write_by: dict[Key, float] = memory.map()

    def sources(self) -> Sequence[Source]:
        found = bundle_sources(self._caches, policy_namespaces=self._graphs.policy_namespaces)
        return [*found, self._tags.changes] if self._tags is not None else found

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.bundles.get(*key)
        if current is None:
            return Result()
        done = RunEffects()
        while True:
            facts = self._observer.observe(current, write_by=self._write_by.get(key), done=done)
            projection = project(facts)
            decision = decide(facts, projection)
            if isinstance(decision.action, Report | Delete):
                return await self._report(key, current, projection, decision)
            log.debug("decided", action=type(decision.action).__name__, reason=decision.message)
            match decision.action:
                case Note():
                    current = await self._write(current, facts, status_of(projection, decision))
                case RollBack(due):
                    # The name follows from the failure: an existing Bundle of this name is from a run that was killed.
                    name = await self._graphs.create_rollback(due.manifest)
                    done = replace(done, rolled_back={**done.rolled_back, due.environment: name})
                case Create(pipeline):
                    self._observer.note_start(current)
                    current, done = await self._create(current, facts, pipeline)
                case Admit(pipeline):
                    current, done = await self._admit(current, facts, pipeline)
                case Extend(graph, pipeline):
                    current, done = await self._extend(current, facts, graph, pipeline)
                case LookUp():
                    # The answer brings the next run.
                    if self._tags is not None:
                        self._tags.ask(key)
                    return Result()
                case StartLater(until):
                    return Result(requeue_after=timedelta(seconds=until - facts.monotonic))
                case Leave():
                    self._write_by.pop(key, None)
                    return Result()

    async def _report(self, key: Key, current: JsonObject, projection: Projection, decision: Decision) -> Result:
        """Write the status if it differs from the stored one, and end the run."""
        facts = projection.facts
        status = status_of(projection, decision)
        moment = write_at(projection, decision, status)
        if moment is not None and moment > facts.monotonic:
            log.debug("decided", action="Wait", reason="progress is written together with what follows within a second")
            self._check_tags(key, projection)
            self._write_by[key] = moment
            return Result(requeue_after=timedelta(seconds=moment - facts.monotonic))
        if moment is not None:
            log.debug("decided", action="WriteStatus", reason="its status is another one than is stored")
            await self._write(current, facts, status)
        self._write_by.pop(key, None)
        if isinstance(decision.action, Delete):
            log.debug("decided", action="Delete", reason="it is superseded, and every step has finished")
            await self._graphs.delete(decision.action.graph)
            return Result()
        log.debug("decided", action="Wait", reason="its status is as it is stored, and nothing else is due")
        refusal = facts.done.refusal
        if isinstance(refusal, GraphRefused) and refusal.may_pass:
            return Result(requeue_after=_ASK_AGAIN)
        return Result(requeue_after=self._check_tags(key, projection))

    def _check_tags(self, key: Key, projection: Projection) -> timedelta | None:
        """Request another look-up of tags before environments start; return the delay of the next run, or None."""
        if self._tags is None or not projection.unchecked:
            return None
        return self._tags.check(key, projection.unchecked)

    async def _create(self, current: JsonObject, facts: Facts, pipeline: Pipeline) -> tuple[JsonObject, RunEffects]:
        """Create the Graph. Its hash is recorded first, so that the Graph is recognised after a crash."""
        try:
            wanted = await self._graphs.translated(pipeline, facts.bundle)
            current = await self._record(current, facts, GraphRecord(next_hash=spec_hash(wanted)))
            graph = await self._graphs.create(wanted, facts.bundle)
        except PromotionError as error:
            return current, replace(facts.done, refusal=error)
        return current, replace(facts.done, graph=graph, created=True)

    async def _admit(self, current: JsonObject, facts: Facts, pipeline: Pipeline) -> tuple[JsonObject, RunEffects]:
        """Promote the Bundle by the Graph that a person has written. It is recorded first, as in `_create`."""
        try:
            graph, record = await self._graphs.admitted(pipeline, facts.bundle)
        except PromotionError as error:
            return current, replace(facts.done, refusal=error)
        if facts.bundle.status.graph_ref is None:
            # Not before: a Graph that is refused again and again must not hold other Bundles.
            self._observer.note_start(current)
            current = await self._record(current, facts, record)
        return current, replace(facts.done, graph=await self._graphs.claim(graph, facts.bundle))

    async def _extend(
        self, current: JsonObject, facts: Facts, graph: JsonObject, pipeline: Pipeline
    ) -> tuple[JsonObject, RunEffects]:
        """Extend the Graph if that is needed. The hash of the extended Graph is recorded first."""
        try:
            wanted = await self._graphs.extension(graph, pipeline, facts.bundle)
        except PromotionError as error:
            return current, replace(facts.done, refusal=error)
        if wanted["spec"] != graph["spec"]:
            before = facts.bundle.status.graph or recorded(graph)
            record = before.model_copy(update={"next_hash": spec_hash(wanted)})
            current = await self._record(current, facts, record)
            wanted = await self._graphs.write(wanted)
        return current, replace(facts.done, graph=wanted)

    async def _record(self, current: JsonObject, facts: Facts, record: GraphRecord) -> JsonObject:
        """Write the record of the Graph and the digests of tags into the status, and nothing else.

        The spec stays that of the beginning of the run, because this spec is translated; a newer spec causes another
        run.
        """
        stored = facts.stored.model_copy(update={"graph": record, "artifacts": facts.bundle.status.artifacts})
        written = await self._status.write(BUNDLE, current, stored.to_json())
        return current if written is None else {**current, "status": written["status"]}

    async def _write(self, current: JsonObject, facts: Facts, status: BundleStatus) -> JsonObject:
        """Write a status; emit the Events, log lines and metrics of its changes."""
        # Nothing was awaited since the siblings were read, so their next decisions see these admissions.
        self._observer.note(current, status)
        written = await self._status.write(BUNDLE, current, status.to_json())
        self._carry_out(current, effects(facts.bundle, before=facts.stored, after=status))
        return written or current

    def _carry_out(self, current: JsonObject, wanted: Iterable[Effect]) -> None:
        for effect in wanted:
            match effect:
                case EmitEvent():
                    self._recorder.event(current, type=effect.type, reason=effect.reason, note=effect.note)
                case LogChange(event, fields):
                    log.info(event, **fields)
                case CountBundle():
                    namespace = current["metadata"]["namespace"]
                    self._metrics.bundle_created(effect.pipeline, effect.source, namespace=namespace)
                case CountRollback():
                    namespace = current["metadata"]["namespace"]
                    self._metrics.rollback(effect.environment, effect.trigger, namespace=namespace)
