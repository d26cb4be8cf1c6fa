"""One Graph, reconciled: compile, walk, write what is missing, say how it stands, and when to look again.

Every reconcile starts from what is observed and may be cut off anywhere. Its order is chosen for that: the revision is
stored before anything is applied from it, objects are applied until a pass wants nothing more, then the status is
written, once, and only then is anything deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kardinal.api import Graph
from kardinal.graph.compile import CompiledGraph
from kardinal.graph.errors import GraphError, Problem
from kardinal.graph.evaluator import Overruns
from kardinal.graph.identity import FINALIZER, GraphIdentity, Kinds, field_manager
from kardinal.graph.prune import patience_ends, teardown_wave
from kardinal.graph.revision import KEPT_REVISIONS, OWNER_INDEX, new_revision, newest_first, revision_name
from kardinal.graph.status import graph_status, terminating_status
from kardinal.graph.texts import TooManyExpressions
from kardinal.graph.walk_types import NodeResult, Situation, Walk
from kardinal.kube import AlreadyExists, Client, NotFound
from kardinal.objects import GRAPH, GRAPH_REVISION, JsonObject, Key, ResourceType
from kardinal.runtime import Clock, EventRecorder, Informer, Result, StatusWriter
from kardinal.runtime.finalizers import add_finalizer, has_finalizer, is_being_deleted, remove_finalizer
from kardinal_controller.graphs.admission import ADMITTED, Admission, Verdict
from kardinal_controller.graphs.applier import Applier, Memory
from kardinal_controller.graphs.compiling import GraphCompiler
from kardinal_controller.graphs.observed import Interests, LabelIndexes, ObservedObjects
from kardinal_controller.graphs.slices import walk_in_slices

__all__ = ["GraphReconciler"]

ROOM_INTERVAL = timedelta(minutes=1)
"""How soon to look again whether a namespace has room for the expressions of a Graph."""


@dataclass(slots=True)
class _Known:
    """The state that a reconcile keeps for the next one of the same Graph; lost without harm."""

    uid: str
    memory: Memory = field(default_factory=Memory)
    overruns: Overruns = field(default_factory=Overruns)
    compiled: dict[object, CompiledGraph | GraphError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Program:
    """The Graph to walk. `error` says that it is an older revision, or nothing, because the Graph does not compile."""

    graph: CompiledGraph | None
    revision: str | None
    error: GraphError | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """One reconcile: the Graph as it was read, and the means to see and to write for it."""

    key: Key
    obj: JsonObject
    graph: Graph
    known: _Known
    view: ObservedObjects
    applier: Applier
    now: datetime


class GraphReconciler:
    """Implements `kardinal.runtime.Reconciler` for Graphs."""

    def __init__(
        self,
        client: Client,
        *,
        compiler: GraphCompiler,
        graphs: Informer,
        revisions: Informer,
        objects: Mapping[ResourceType, Informer],
        interests: Interests,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        admission: Admission | None = None,
    ) -> None:
        self._client = client
        self._admission = admission
        self._compiler = compiler
        self._graphs = graphs
        self._revisions = revisions
        self._objects = objects
        self._labels = LabelIndexes(objects)
        self._kinds: Kinds = {(resource.api_version, resource.kind): resource for resource in objects}
        self._interests = interests
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._known: dict[Key, _Known] = {}

    async def reconcile(self, key: Key) -> Result:
        obj = self._graphs.get(*key)
        if obj is None:
            self._forget(key)
            return Result()
        run = self._run(key, obj)
        if is_being_deleted(obj):
            return await self._tear_down(run)
        verdict = await self._admission(obj) if self._admission is not None else ADMITTED
        if verdict.state == "undecided":
            return Result()
        await add_finalizer(self._client, GRAPH, obj, FINALIZER)
        program = await self._program(run) if verdict.state == "admitted" else _refused(verdict)
        result = await self._converge(run, program.graph) if program.graph else None
        outcomes = result.outcomes if result else ()
        self._tell(run, program, outcomes)
        status = graph_status(run.obj, outcomes, error=program.error, revision=program.revision, now=run.now)
        await self._status.write(GRAPH, obj, status)
        if result is None:
            waiting = isinstance(program.error, TooManyExpressions)
            return Result(requeue_after=ROOM_INTERVAL if waiting else None)
        await run.applier.prune(result.prunes)
        return Result(requeue_after=result.wake - run.now if result.wake else None)

    def _run(self, key: Key, obj: JsonObject) -> _Run:
        uid = obj["metadata"]["uid"]
        known = self._known.get(key)
        if known is None or known.uid != uid:
            known = self._known[key] = _Known(uid)
        specs = [obj.get("spec") or {}, *(revision["spec"] for revision in self._revisions_of(uid))]
        view = ObservedObjects(self._objects, self._labels, namespace=key.namespace, uid=uid, specs=specs)
        applier = Applier(self._client, clock=self._clock, field_manager=field_manager(*key), memory=known.memory)
        # The nodes are for the compiler alone, which says what is wrong with them.
        graph = Graph.model_validate({**obj, "spec": {}})
        return _Run(key, obj, graph, known, view, applier, self._clock.now())

    async def _converge(self, run: _Run, program: CompiledGraph) -> Walk:
        """Walk and apply until a pass wants nothing applied; every pass completes at least one node."""
        metadata, memory = run.graph.metadata, run.known.memory
        owners = frozenset((owner.api_version, owner.kind, owner.name) for owner in metadata.owner_references)
        situation = Situation(
            GraphIdentity(*run.key, uid=metadata.uid, owners=owners),
            run.view,
            self._kinds,
            run.now,
            memory.failures,
            memory.accepted,
            references=frozenset(node.id for node in run.graph.status.nodes if node.kind == "ref"),
            overruns=run.known.overruns,
        )
        for _ in range(len(program.nodes) + 1):
            result = await walk_in_slices(program, situation, note=lambda seen: self._interests.note(run.key, seen))
            self._interests.note(run.key, result)
            if not result.applies:
                break
            await run.applier.apply(result.applies, run.view)
        return result

    async def _program(self, run: _Run) -> _Program:
        """Return the compiled Graph and its revision, which is stored first; else the newest revision that compiles."""
        metadata = run.obj["metadata"]
        mine = self._revisions_of(metadata["uid"])
        name = revision_name(metadata["name"], metadata["generation"])
        accepted = any(revision["metadata"]["name"] == name for revision in mine)
        compiled = await self._compile(run, metadata["generation"], run.obj.get("spec", {}), known=accepted)
        if isinstance(compiled, CompiledGraph):
            if mine and mine[0]["spec"]["hash"] == compiled.hash:
                return _Program(compiled, mine[0]["metadata"]["name"])
            await self._store_revision(run.obj, compiled, mine)
            return _Program(compiled, name)
        # What a program admits is the Graph as it is, and anybody who may write revisions can have made an older one.
        for revision in mine if self._admission is None else ():
            last = await self._compile(run, revision["metadata"]["uid"], revision["spec"], known=True)
            if isinstance(last, CompiledGraph):
                return _Program(last, revision["metadata"]["name"], compiled)
        return _Program(None, None, compiled)

    def _revisions_of(self, uid: str) -> list[JsonObject]:
        return newest_first(self._revisions.by_index(OWNER_INDEX, uid))

    async def _compile(
        self, run: _Run, version: object, spec: JsonObject, *, known: bool
    ) -> CompiledGraph | GraphError:
        """Return what compiling one version of the spec yields, without doing it twice."""
        compiled = run.known.compiled
        if version in compiled:
            return compiled[version]
        found = await self._compiler.compile(run.key, spec, known=known)
        if not isinstance(found, TooManyExpressions):
            if len(compiled) > KEPT_REVISIONS:
                compiled.clear()
            compiled[version] = found
        return found

    async def _store_revision(self, obj: JsonObject, compiled: CompiledGraph, mine: list[JsonObject]) -> None:
        try:
            await self._client.create(GRAPH_REVISION, new_revision(obj, content=compiled.hash))
        except AlreadyExists:
            # Stored by a run that was cut off before it saw its own write.
            return
        for revision in mine[KEPT_REVISIONS:]:
            metadata = revision["metadata"]
            try:
                await self._client.delete(GRAPH_REVISION, metadata["name"], metadata["namespace"], uid=metadata["uid"])
            except NotFound:
                continue

    async def _tear_down(self, run: _Run) -> Result:
        """Delete wave after wave, and let the Graph itself go when nothing is left."""
        if not has_finalizer(run.obj, FINALIZER):
            return Result()
        wave = teardown_wave(run.view.owned(), now=run.now)
        if not wave:
            await remove_finalizer(self._client, GRAPH, run.obj, FINALIZER)
            return Result()
        await self._status.write(GRAPH, run.obj, terminating_status(run.obj, wave, now=run.now))
        await run.applier.prune(wave)
        until = patience_ends(wave)
        return Result(requeue_after=until - run.now if until else None)

    def _tell(self, run: _Run, program: _Program, outcomes: tuple[NodeResult, ...]) -> None:
        """Events for what a person did, once: not for what merely goes on."""
        before = run.graph.status
        if program.error and before.observed_generation != run.graph.metadata.generation:
            self._recorder.event(run.obj, type="Warning", reason=program.error.reason, note=program.error.message)
        told = {node.id for node in before.nodes if node.reason == "AmbiguousTemplate"}
        for outcome in outcomes:
            if outcome.reason == "AmbiguousTemplate" and outcome.node.id not in told:
                note = f"node {outcome.node.id} reads an object that exists; write ref instead of template to say so"
                self._recorder.event(run.obj, type="Warning", reason="AmbiguousTemplate", note=note)

    def _forget(self, key: Key) -> None:
        self._known.pop(key, None)
        self._compiler.forget(key)
        self._interests.forget(key)


def _refused(verdict: Verdict) -> _Program:
    """Return what stands in the place of a program where a Graph is not walked."""
    return _Program(None, None, GraphError([Problem("NotAdmitted", "spec.nodes", verdict.message)]))
