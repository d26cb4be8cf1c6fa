"""Reconcile one Graph: compile it, walk it, apply and delete objects, and write its status.

Every reconcile starts from observed objects and may be cut off anywhere. Its order is chosen for that: the revision is
stored before objects are applied from it, objects are applied until a pass returns no further ones, then the status is
written, once, and only then are objects deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import structlog

from kardinal.clock import Clock
from kardinal.graph.compile import CompiledGraph
from kardinal.graph.dialect import has_hooks
from kardinal.graph.earlier import repeatable
from kardinal.graph.errors import GraphError, GraphProblem
from kardinal.graph.evaluator import Overruns
from kardinal.graph.identity import FINALIZER, GraphIdentity, ObjectKey, field_manager
from kardinal.graph.named import Named
from kardinal.graph.prune import patience_ends, teardown_wave
from kardinal.graph.revision import KEPT_REVISIONS, OWNER_INDEX, new_revision, newest_first, revision_name
from kardinal.graph.status import graph_status, terminating_status
from kardinal.graph.texts import TooManyExpressions
from kardinal.graph.walk_types import Apply, NodeResult, Remembered, Seen, Walk, WalkInput
from kardinal.kube import AlreadyExists, Client, NotFound
from kardinal.objects import GRAPH, GRAPH_REVISION, SECRET, JsonObject, Key, ResourceType
from kardinal.objects.applied import content_hash
from kardinal.runtime import EventRecorder, Informer, KeyMemory, Result, StatusWriter
from kardinal.runtime.finalizers import add_finalizer, has_finalizer, is_being_deleted, remove_finalizer
from kardinal_controller.graphs.accounts import ANSWER_SECONDS, AccountRights, Permits, account_of
from kardinal_controller.graphs.applier import Applier, Memory
from kardinal_controller.graphs.compiling import GraphCompiler
from kardinal_controller.graphs.interests import Interests
from kardinal_controller.graphs.kinds import GraphKinds, Kind
from kardinal_controller.graphs.ledger import Ledger
from kardinal_controller.graphs.metrics import GraphMetrics
from kardinal_controller.graphs.observed import ObservedObjects
from kardinal_controller.graphs.ownership import Admission, GraphOwner, GraphOwners
from kardinal_controller.graphs.slices import walk_in_slices

__all__ = ["GraphReconciler"]

log = structlog.get_logger(__name__)

RESYNC = timedelta(minutes=30)
"""The interval at which each Graph is walked again, so that its objects are compared with what its nodes want."""
ASK_AGAIN = timedelta(seconds=ANSWER_SECONDS)
"""The interval at which to ask again for what no event tells of: rights, Secrets, kinds that are not installed, and
room for the expressions of a Graph."""
LOOK_AGAIN = timedelta(seconds=5)
"""The interval at which to look whether an object outside the namespace is gone: none of its events names the Graph."""
PASSES = 6
"""The most passes for each node: to learn its kind, whether its account is lent, what that may do with all objects and
with this one, to read the kind, and to apply its object."""


@dataclass(slots=True)
class _Known:
    """The state that a reconcile keeps for the next one of the same Graph; lost without harm."""

    uid: str
    memory: Memory = field(default_factory=Memory)
    overruns: Overruns = field(default_factory=Overruns)
    compiled: dict[object, CompiledGraph | GraphError] = field(default_factory=dict)
    remembered: dict[str, Remembered] = field(default_factory=dict)
    versions: frozenset[tuple[str, int]] = frozenset()
    """The uid and the generation of the Graph and of each of its revisions, which stand for their specs."""
    named: Named = field(default_factory=Named)
    """Of all of these specs."""
    ledger: Ledger | None = None
    due: datetime | None = None
    """The time of the next walk, if nothing changes before."""


@dataclass(frozen=True, slots=True)
class _Program:
    """The Graph to walk.

    `error`: why the Graph does not compile; `graph` is then an older revision, or None.
    """

    graph: CompiledGraph | None
    revision: str | None
    error: GraphError | None = None


@dataclass(frozen=True, slots=True)
class _Run:
    """One reconcile: the Graph as it was read, and the means to read and to write its objects."""

    key: Key
    obj: JsonObject
    known: _Known
    owner: GraphOwner | None
    """None for a Graph without a registered owner: it is not walked, but its deletion is carried out."""
    view: ObservedObjects
    kinds: dict[Kind, ResourceType]
    """The kinds that its nodes may have, as far as they are known."""
    ledger: Ledger
    acting: Client | None
    """The client of the account."""
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
        kinds: GraphKinds,
        rights: AccountRights,
        reserved: frozenset[str],
        interests: Interests,
        metrics: GraphMetrics,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        owners: GraphOwners,
        memory: KeyMemory,
    ) -> None:
        self._client = client
        self._owners = owners
        self._compiler = compiler
        self._graphs = graphs
        self._revisions = revisions
        self._kinds = kinds
        self._rights = rights
        self._reserved = reserved
        self._interests = interests
        self._metrics = metrics
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._known: dict[Key, _Known] = memory.map()

    async def reconcile(self, key: Key) -> Result:
        obj = self._graphs.get(*key)
        if obj is None:
            return Result()
        run = self._run(key, obj)
        if run.known.due is not None and run.known.due <= run.now:
            self._metrics.timer_fires.inc()
        run.known.due = None
        if is_being_deleted(obj):
            return await self._tear_down(run)
        admission = await run.owner.admission(obj) if run.owner is not None else self._owners.refusal()
        if admission.state == "undecided":
            return Result()
        await add_finalizer(self._client, GRAPH, obj, FINALIZER)
        program = await self._program(run) if admission.state == "admitted" else _refused(admission)
        result = await self._converge(run, program.graph, str(program.revision)) if program.graph else None
        if result is None:
            self._kinds.keep(key, kinds=(), resources=())
        outcomes = result.outcomes if result else ()
        log.debug("walked", **_summary(outcomes), admission=admission.state)
        self._metrics.walked(key, (outcome.state for outcome in outcomes))
        self._tell(run, program, outcomes)
        status = graph_status(run.obj, outcomes, error=program.error, revision=program.revision, now=run.now)
        await self._status.write(GRAPH, obj, status)
        if result is None:
            waiting = isinstance(program.error, TooManyExpressions) or admission.asked_again
            return Result(requeue_after=ASK_AGAIN if waiting else None)
        await run.applier.prune(result.prunes)
        gone = await self._forget_gone(run, str(program.revision), wanted=result.reads)
        if any(prune.release and not prune.held for prune in result.prunes):
            # No event tells of it: the object is none that the Graph owns or reads. What was behind it may go now.
            self._interests.push(key)
        wait = _next_walk(run, result) if gone else min(_next_walk(run, result), LOOK_AGAIN)
        run.known.due = run.now + wait
        return Result(requeue_after=wait)

    def _run(self, key: Key, obj: JsonObject) -> _Run:
        uid = obj["metadata"]["uid"]
        known = self._known.get(key)
        if known is None or known.uid != uid:
            known = self._known[key] = _Known(uid)
        revisions = self._revisions_of(uid)
        versions = frozenset((each["metadata"]["uid"], each["metadata"]["generation"]) for each in (obj, *revisions))
        if known.versions != versions:
            known.versions = versions
            known.named = Named(each.get("spec") or {} for each in (obj, *revisions))
        if known.ledger is None:
            known.ledger = Ledger(self._status, key, uid=uid, revisions=revisions)
        owner = self._owners.of(obj)
        own = owner.kinds if owner is not None else self._owners.kinds
        account = account_of(obj)
        acting = self._client.as_user(account.user) if account is not None else None
        view = ObservedObjects(
            self._kinds,
            graph=key,
            uid=uid,
            named=known.named,
            own=own,
            permits=Permits(self._rights, account),
            client=acting,
            released=known.memory.released,
            ledger=known.ledger,
        )

        def writer(resource: ResourceType) -> Client:
            """Return the client of the owner for its kinds, and otherwise that of the account."""
            if resource in own:
                return owner.identity(obj) if owner is not None else self._client
            if acting is None:
                raise TypeError(f"a walk without an account has written a {resource.kind}")
            return acting

        applier = Applier(
            writer,
            clock=self._clock,
            field_manager=field_manager(*key),
            memory=known.memory,
            writing=partial(self._interests.writing, key),
            metrics=self._metrics,
        )
        kinds = {(each.api_version, each.kind): each for each in own}
        return _Run(key, obj, known, owner, view, kinds, known.ledger, acting, applier, self._clock.now())

    async def _forget_gone(self, run: _Run, revision: str, *, wanted: Collection[ObjectKey] = ()) -> bool:
        """Forget the recorded objects that are gone; return whether all are that no node wants."""
        if not run.ledger or run.acting is None or not await run.view.lent():
            return True
        return not await run.ledger.forget_gone(revision, run.acting, run.view.opened_as_owned, wanted=wanted)

    async def _find_kinds(self, run: _Run) -> None:
        """Find the kinds that nodes name, and read those of which the Graph may have made or patched objects."""
        named = run.known.named
        run.kinds.update(await self._kinds.served(run.key, named.kinds - run.kinds.keys()))
        made = [run.kinds[kind] for kind in named.written & run.kinds.keys()]
        free = run.owner.makes if run.owner is not None else ()
        await run.view.open_owned(
            resource for resource in made if resource.group not in self._reserved or resource in free
        )

    async def _converge(self, run: _Run, program: CompiledGraph, revision: str, *, deleting: bool = False) -> Walk:
        """Walk and apply until a pass wants nothing applied; every pass completes at least one node.

        `revision`: the name of the GraphRevision that has the record of objects outside the namespace.
        """
        await run.ledger.follow(revision)
        await self._find_kinds(run)
        metadata = run.obj["metadata"]
        memory = run.known.memory
        references = metadata.get("ownerReferences") or ()
        owners = frozenset((owner["apiVersion"], owner["kind"], owner["name"]) for owner in references)
        situation = WalkInput(
            GraphIdentity(*run.key, uid=metadata["uid"], owners=owners),
            run.view,
            run.kinds,
            run.now,
            memory.failures,
            memory.accepted,
            references=frozenset(node["id"] for node in _told_nodes(run.obj) if node["kind"] == "ref"),
            not_ready_since=_not_ready_since(run.obj),
            overruns=run.known.overruns,
            reserved=self._reserved,
            free=frozenset((*run.owner.kinds, *run.owner.makes)) if run.owner is not None else frozenset(),
            remembered={} if deleting else run.known.remembered,
            deleting=deleting,
            outside=run.ledger if run.owner is not None and GRAPH in run.owner.makes else None,
        )
        unserved: frozenset[Kind] = frozenset()
        for _ in range(PASSES * (len(program.nodes) + 1)):
            result = await walk_in_slices(program, situation, note=lambda seen: self._interests.add(run.key, seen))
            self._interests.note(run.key, Seen(result.reads, result.selections))
            self._metrics.passed(result)
            if new := result.unserved - unserved:
                unserved |= new
                run.kinds.update(await self._kinds.served(run.key, new - run.kinds.keys()))
                if new & run.kinds.keys():
                    continue
            if await run.view.look_up():
                continue
            if not result.applies:
                break
            outside = _outside(result.applies, run.key)
            await run.ledger.record(revision, dict.fromkeys(outside))
            await run.applier.apply(result.applies, run.view)
            await run.ledger.record(revision, {key: made for key in outside if (made := run.view.answers.get(key))})
        memory.keep(result.reads)
        run.known.remembered = repeatable(situation.remembered, run.view.answers)
        self._keep_kinds(run, result)
        return result

    def _keep_kinds(self, run: _Run, result: Walk) -> None:
        """Go on watching the kinds that the Graph has made objects of or has read, and no others for it."""
        own = {(each.api_version, each.kind) for each in (run.owner.kinds if run.owner is not None else ())}
        read = {key.resource for key in result.reads} | {selection.resource for selection in result.selections}
        resources = (read | run.view.opened_as_owned) - {SECRET}
        self._kinds.keep(run.key, kinds=(run.kinds.keys() | result.unserved) - own, resources=resources)

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
            run.ledger.lost()
            return _Program(compiled, name)
        # A Graph is admitted as its spec is recorded: anybody who may write revisions can have made an older one.
        for revision in mine if run.owner is not None and not run.owner.records_specs else ():
            last = await self._compile(run, revision["metadata"]["uid"], revision["spec"], known=True)
            if isinstance(last, CompiledGraph):
                return _Program(last, revision["metadata"]["name"], compiled)
        return _Program(None, None, compiled)

    def _revisions_of(self, uid: str) -> list[JsonObject]:
        return newest_first(self._revisions.by_index(OWNER_INDEX, uid))

    async def _compile(
        self, run: _Run, version: object, spec: JsonObject, *, known: bool
    ) -> CompiledGraph | GraphError:
        """Compile one version of the spec, or return the result of an earlier call."""
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
        """Delete the objects of a Graph wave by wave; when none is left, remove the finalizer of the Graph."""
        if not has_finalizer(run.obj, FINALIZER):
            return Result()
        await self._find_kinds(run)
        program = await self._program_with_hooks(run)
        identity = GraphIdentity(*run.key, uid=run.obj["metadata"]["uid"])
        revision = next((each["metadata"]["name"] for each in self._revisions_of(identity.uid)), "")
        while True:
            walked = await self._converge(run, program, revision, deleting=True) if program is not None else None
            wave = walked.prunes if walked is not None else teardown_wave(identity, run.view, now=run.now)
            if not wave and not await self._forget_gone(run, revision):
                return Result(requeue_after=LOOK_AGAIN)
            if not wave:
                await remove_finalizer(self._client, GRAPH, run.obj, FINALIZER)
                return Result()
            results = walked.outcomes if walked is not None else ()
            status = terminating_status(run.obj, wave, results=results, now=run.now)
            await self._status.write(GRAPH, run.obj, status)
            await run.applier.prune(wave)
            # No event tells of what is released, and of what is deleted one does.
            if not all(prune.release and not prune.held for prune in wave):
                break
        if run.ledger:
            return Result(requeue_after=LOOK_AGAIN)
        if walked is not None:
            return Result(requeue_after=_next_walk(run, walked))
        until = patience_ends(wave)
        return Result(requeue_after=until - run.now if until else None)

    async def _program_with_hooks(self, run: _Run) -> CompiledGraph | None:
        """Return the graph of a deleted Graph if hooks may hold up its deletion.

        That is the newest version that compiles. A Graph that is not admitted writes nothing, so its hooks do not act.
        """
        metadata = run.obj["metadata"]
        versions = [(metadata["generation"], run.obj.get("spec") or {})]
        if run.owner is not None and not run.owner.records_specs:
            mine = self._revisions_of(metadata["uid"])
            versions += [(revision["metadata"]["uid"], revision["spec"]) for revision in mine]
        if not any(has_hooks(spec) for _, spec in versions):
            return None
        if run.owner is None or (await run.owner.admission(run.obj)).state != "admitted":
            return None
        for version, spec in versions:
            compiled = await self._compile(run, version, spec, known=True)
            if isinstance(compiled, CompiledGraph):
                return compiled if compiled.hooks else None
        return None

    def _tell(self, run: _Run, program: _Program, outcomes: tuple[NodeResult, ...]) -> None:
        """Emit Events, each once: for a spec that does not compile, an ambiguous template, a node not ready in time."""
        before = (run.obj.get("status") or {}).get("observedGeneration")
        if program.error and before != run.obj["metadata"].get("generation"):
            self._recorder.event(run.obj, type="Warning", reason=program.error.reason, note=program.error.message)
        told = {(node["id"], node.get("reason")) for node in _told_nodes(run.obj)}
        for outcome in outcomes:
            if outcome.reason not in ("AmbiguousTemplate", "TimedOut") or (outcome.node.id, outcome.reason) in told:
                continue
            note = f"node {outcome.node.id} is {outcome.message}"
            if outcome.reason == "AmbiguousTemplate":
                note = f"node {outcome.node.id} reads an object that exists; write ref instead of template to say so"
            self._recorder.event(run.obj, type="Warning", reason=outcome.reason, note=note)


def _told_nodes(graph: JsonObject) -> Sequence[JsonObject]:
    """Return the nodes in the status of a Graph, as an earlier run has written them."""
    return (graph.get("status") or {}).get("nodes") or ()


def _outside(applies: Iterable[Apply], graph: Key) -> list[ObjectKey]:
    """Return the objects outside the namespace that are to be made or changed."""
    keys = (apply.desired.key for apply in applies if apply.node.declaration.kind == "template")
    return [key for key in keys if key.namespace != graph.namespace]


def _not_ready_since(graph: JsonObject) -> dict[str, datetime]:
    """Return the times since which nodes are NotReady, from the status of a Graph."""
    nodes = (node for node in _told_nodes(graph) if node["state"] == "NotReady" and "lastTransitionTime" in node)
    return {node["id"]: datetime.fromisoformat(node["lastTransitionTime"]) for node in nodes}


def _summary(outcomes: Sequence[NodeResult]) -> dict[str, object]:
    """Return the fields of a log line: the number of nodes, and the obstacle of the first node that is not Ready."""
    waiting = next((node for node in outcomes if node.state not in ("Ready", "Excluded")), None)
    if waiting is None:
        return {"nodes": len(outcomes), "reason": "every node is ready"}
    held = f"{waiting.node.id} is {waiting.state}"
    behind = f", behind {', '.join(waiting.waiting_for)}" if waiting.waiting_for else ""
    return {"nodes": len(outcomes), "reason": held + behind, "message": waiting.message}


def _next_walk(run: _Run, result: Walk) -> timedelta:
    """Return the time after which to walk a Graph again if nothing changes."""
    waits = [_resync(run.obj["metadata"]["uid"])]
    if result.wake is not None:
        waits.append(result.wake - run.now)
    if run.view.has_secrets or any(outcome.reason in _ASKED_AGAIN for outcome in result.outcomes):
        waits.append(ASK_AGAIN)
    return min(waits)


def _resync(uid: str) -> timedelta:
    """Return an interval between 0.8 and 1.2 times the usual one, always the same for a Graph."""
    return RESYNC * (0.8 + 0.4 * int(content_hash(uid), 16) / 16**12)


_ASKED_AGAIN = frozenset(["KindNotInstalled", "AccessDenied", "AccountNotLent", "WatchForbidden"])


def _refused(admission: Admission) -> _Program:
    """Return a program without nodes to walk, whose error is the refusal of the Graph."""
    return _Program(None, None, GraphError([GraphProblem("NotAdmitted", "spec.nodes", admission.message)]))
