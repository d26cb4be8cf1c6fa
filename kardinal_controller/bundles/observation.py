"""Everything that the next decision about a Bundle depends on, read at one moment.

`Observer` is the only place that reads: it takes the Bundle, its Pipeline, its siblings, its Graph and its steps from
the informers. What it returns is a value; the rules on it are in `decide`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import islice

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.api.bundle import BundleStatus, EnvironmentStatus, Intent
from kardinal.api.names import ANNOTATION_PIN, freeze_name, hold_name
from kardinal.api.resolved import unpinned_images
from kardinal.api.stored import StoredModels
from kardinal.objects import GRAPH, JsonObject, Key, controller_of, key_of, labels_of
from kardinal.policy.holds import is_hold
from kardinal.policy.matching import is_freeze
from kardinal.runtime import Clock
from kardinal.translation.drift import NO_DRIFT, Drift
from kardinal.translation.errors import InvalidSpec, PromotionError
from kardinal.translation.route import find_route
from kardinal.translation.topology import Topology, read_topology
from kardinal_controller.bundles.contenders import Contender, Order, Standing, orders_of, standings_of
from kardinal_controller.bundles.drift import DriftReader
from kardinal_controller.bundles.failures import DueRollback, due_rollback, refused_artifacts, stopped
from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.progress import environments, graph_trouble
from kardinal_controller.bundles.requests import Situation, unseen
from kardinal_controller.bundles.rollback import recorded_before
from kardinal_controller.bundles.supersession import Admissions, SequenceNumbers, Start, Starts
from kardinal_controller.bundles.tags import Tags
from kardinal_controller.bundles.takeover import settled
from kardinal_controller.caches import Caches, has_started, is_pending, pipeline_label

__all__ = ["Observation", "Observer"]

_NOT_ASKED = "tags are not looked up: that needs --allow-registries"


@dataclass(frozen=True)
class Observation:
    """A Bundle and its surroundings, and what the present run has already done for it."""

    bundle: Bundle
    """With its sequence number filled in; otherwise as it was when the run began, its status included."""
    stored: BundleStatus
    """The status that the API server has: the one the run began with, or the one that the run has written since."""
    label: str
    """The Pipeline as a label value; empty where the Bundle names none."""
    pipeline: Pipeline | None
    own: Contender
    """The Bundle as the others see it, as far as its status says."""
    siblings: Sequence[Contender]
    """The other Bundles of the Pipeline and type that have started, and a newer one that is about to."""
    current: JsonObject
    """The Bundle as the informer has it."""
    peers: Sequence[JsonObject]
    """The other Bundles of the Pipeline that have started, of whichever type."""
    graph: JsonObject | None
    """The Graph that belongs to this very Bundle, as it was when the run began."""
    steps: Mapping[str, PromotionStep]
    """The PromotionStep of each environment that has one."""
    now: datetime
    monotonic: float
    """Seconds of the monotonic clock at `now`."""
    write_by: float | None = None
    """Until when progress of an earlier run may wait to be written, in seconds of the monotonic clock."""
    latest_start: Start | None = None
    """The latest start of another Bundle of the Pipeline and type, as far as it is known."""
    next_order: Order | None = None
    """The order of the first new request; None where there is none."""
    freeze: str | None = None
    """The message of the freeze of its Pipeline; None where there is no freeze."""
    held: Mapping[str, str] = field(default_factory=dict)
    """The Bundle that the hold of an environment lets through, by environment that has a hold."""
    drift: Drift = NO_DRIFT
    """The differences between its Graph and what it would be today, while it is under way."""
    unresolved: bool = False
    """Whether its tags are still to be looked up before it starts."""
    checks_tags: bool = False
    """Whether its tags are looked up again before an environment starts."""
    outcome: JsonObject | PromotionError | None = None
    """The result of the Create or Extend of this run: the Graph, or why the resources cannot be translated."""

    @cached_property
    def topology(self) -> Topology | None:
        """The environments of the Graph and their order."""
        return read_topology(self.graph) if self.graph is not None else None

    @cached_property
    def environments(self) -> dict[str, EnvironmentStatus]:
        """The entry of each environment as the steps have it now, and as follows from the other Bundles."""
        status = self.bundle.status
        entries = environments(self.topology, self.steps, status.environments, under_way=not status.has_ended)
        refused = refused_artifacts(self.bundle, self.current, self.peers)
        entries = stopped(entries, status.environments, on_failure=self.on_failure, refused=refused)
        return self._settled(entries) if self.graph is not None else entries

    @cached_property
    def due_rollback(self) -> DueRollback | None:
        """The rollback that follows from a failure and was not made yet."""
        return due_rollback(self.bundle, self.current, self.environments, self.peers, on_failure=self.on_failure)

    @cached_property
    def on_failure(self) -> Mapping[str, str]:
        """The consequence of a failure by environment, as the Pipeline has it today."""
        listed = self.pipeline.spec.environments if self.pipeline is not None else ()
        return {each.name: each.on_health_failure for each in listed}

    @cached_property
    def prospect(self) -> dict[str, EnvironmentStatus]:
        """The entries that the Bundle would have with a Graph made now; empty where it cannot have one."""
        entries = {name: EnvironmentStatus(state="Pending") for name in self.upstreams}
        return self._settled(entries | self.bundle.status.environments) if entries else {}

    @cached_property
    def upstreams(self) -> Mapping[str, tuple[str, ...]]:
        """The order of the environments: in the Graph, or without one as the Pipeline has it today."""
        if self.topology is not None:
            return self.topology.upstreams
        if self.pipeline is None:
            return {}
        try:
            return find_route(self.pipeline, self.bundle).upstreams
        except InvalidSpec:
            return {}

    @cached_property
    def unchecked(self) -> tuple[str, ...]:
        """The environments that are about to start, before which tags are to be looked up again."""
        status, entries = self.bundle.status, self.environments
        if not self.checks_tags or status.artifacts is None or status.phase not in ("Promoting", "Failed"):
            return ()
        unknown = any(image.digest is None or image.message is not None for image in status.artifacts)
        verified = {name for name, entry in entries.items() if entry.state == "Verified"}
        found = []
        for name, entry in entries.items():
            before = entries.keys() & self.upstreams.get(name, ())
            asks = entry.tags_checked_at is None and not Standing.of(entry).has_ended and entry.promoted_at is None
            # What the environments without any before them start with was found when the Bundle started.
            if asks and (before or unknown) and before <= verified:
                found.append(name)
        return tuple(found)

    @property
    def situation(self) -> Situation:
        """Return what requests are decided by."""
        upstreams = self.upstreams
        if self.pipeline is not None:
            intent = Intent(skip=self.bundle.spec.intent.skip, rollback=self.bundle.spec.intent.rollback)
            whole = self.bundle.spec.model_copy(update={"intent": intent})
            with suppress(InvalidSpec):
                upstreams = find_route(self.pipeline, self.bundle.model_copy(update={"spec": whole})).upstreams
        return Situation(
            pipeline=self.pipeline.metadata.name if self.pipeline is not None else self.label,
            upstreams=upstreams,
            entries=self.environments,
            others=self.siblings,
            own=self.own.with_standings(self.environments),
        )

    @property
    def in_queue(self) -> bool:
        """Return whether the Bundles of the Pipeline follow each other instead of taking each other's place."""
        return self.pipeline is not None and self.pipeline.spec.promotion_policy == "queue"

    def _settled(self, entries: dict[str, EnvironmentStatus]) -> dict[str, EnvironmentStatus]:
        has_graph = self.graph is not None or self.bundle.status.phase != "Superseded"
        own = replace(self.own, has_graph=has_graph, read_upstreams=lambda: self.upstreams).with_standings(entries)
        return settled(
            own,
            entries,
            self.siblings,
            started=[
                name
                for name, step in self.steps.items()
                if name in entries and step.spec.attempt == entries[name].attempt
            ],
            coming=self._coming(entries),
            queue=self.in_queue,
            now=self.now,
            held=self.held,
        )

    def _coming(self, entries: Mapping[str, EnvironmentStatus]) -> set[str]:
        """Return the environments whose step the engine makes at once: nothing stands before them."""
        topology = self.topology
        if topology is None or self.graph is None or graph_trouble(self.graph) is not None:
            return set()
        gated = {gate.environment for gate in topology.gates}
        verified = {name for name, entry in entries.items() if entry.state == "Verified" and entry.healthy is not False}
        return {
            name
            for name, before in topology.upstreams.items()
            if name not in gated and verified.issuperset(topology.steps.keys() & before)
        }


class Observer:
    """Reads observations from the informers."""

    def __init__(self, caches: Caches, graphs: GraphKeeper, *, clock: Clock, tags: Tags | None) -> None:
        self._caches = caches
        self._graphs = graphs
        self._clock = clock
        self._tags = tags
        self._numbers = SequenceNumbers()
        self._admissions = Admissions()
        self._starts = Starts()
        self._drifts = DriftReader(graphs)
        self._bundles = StoredModels(Bundle)
        self._pipelines = StoredModels(Pipeline)
        self._steps = StoredModels(PromotionStep)
        self._contenders: dict[Key, _Known] = {}

    def observe(self, current: JsonObject, *, write_by: float | None) -> Observation:
        """Return what can be seen of the Bundle `current`."""
        key = key_of(current)
        label = pipeline_label(current)
        stored = self._caches.pipeline(key.namespace, label) if label else None
        bundle = self._bundles.of(current)
        status = bundle.status
        if label:
            if self._numbers.of(current) is None:
                self._numbers.assign(self._caches.bundles_of(key.namespace, label))
            bundle = self._numbers.fill_in(bundle)
        bundle, unresolved = self._with_digests(bundle)
        graph = self._graphs.find(bundle)
        steps = [self._steps.of(step) for step in self._caches.steps_of(key) if _made_by(graph, step)]
        pipeline = self._pipelines.of(stored) if stored is not None else None
        return Observation(
            bundle=bundle,
            stored=status,
            label=label,
            pipeline=pipeline,
            own=self._contender(current),
            siblings=self.siblings(current),
            current=current,
            peers=[each for each in self._caches.started(key.namespace, label) if key_of(each) != key] if label else [],
            graph=graph,
            steps={step.spec.environment: step for step in steps},
            now=self._clock.now(),
            monotonic=self._clock.monotonic(),
            write_by=write_by,
            latest_start=self._starts.latest_before(current) if label else None,
            next_order=self._next_order(current, bundle),
            freeze=self._freeze(key.namespace, pipeline),
            held=self._holds(key.namespace, pipeline),
            drift=self._drifts.read(bundle, graph, pipeline),
            unresolved=unresolved,
            checks_tags=self._tags is not None,
        )

    def siblings(self, current: JsonObject) -> list[Contender]:
        """Return what can be seen now of the other Bundles of the Pipeline."""
        label = pipeline_label(current)
        return [self._contender(each) for each in self._rivals(current, label)] if label else []

    def _with_digests(self, bundle: Bundle) -> tuple[Bundle, bool]:
        """Return the Bundle with what was found of its tags, and whether they are still to be looked up."""
        if self._tags is None or not unpinned_images(bundle.spec.artifacts):
            return self._with_recorded(bundle), False
        if (found := self._tags.known(bundle)) is None:
            return bundle, True
        update: dict[str, object] = {"artifacts": found}
        if (check := self._tags.checked(bundle)) is not None:
            entries = bundle.status.environments
            stamp = {"tags_checked_at": check.at}
            stamped = {
                name: entry.model_copy(update=stamp)
                for name, entry in entries.items()
                if name in check.environments and entry.tags_checked_at is None
            }
            update = {"artifacts": check.artifacts, "environments": {**entries, **stamped}}
        return bundle.model_copy(update={"status": bundle.status.model_copy(update=update)}), False

    def _with_recorded(self, bundle: Bundle) -> Bundle:
        """Return a rollback that starts with the digests of what it brings back, where no registry is asked."""
        started = bundle.status.graph_ref is not None or bundle.status.artifacts is not None
        if started or not (recorded := recorded_before(bundle, self._caches)):
            return bundle
        found = tuple(each.model_copy(update={"message": _NOT_ASKED}) for each in recorded)
        return bundle.model_copy(update={"status": bundle.status.model_copy(update={"artifacts": found})})

    def _next_order(self, current: JsonObject, bundle: Bundle) -> Order | None:
        label, count = pipeline_label(current), len(unseen(bundle))
        bundles = self._caches.bundles_of(bundle.metadata.namespace, label) if label and count else ()
        return self._numbers.reserve(bundles, count) if bundles else None

    def note(self, current: JsonObject, status: BundleStatus) -> None:
        """Take over what a status says that is about to be written."""
        self._admissions.note(current, status.environments)

    def note_start(self, current: JsonObject) -> None:
        """Take over that the Bundle is given a Graph now."""
        self._starts.note(current, self._clock.monotonic())

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a Bundle that is gone."""
        self._admissions.forget(key)
        self._contenders.pop(key, None)
        self._drifts.forget(key)
        if self._tags is not None:
            self._tags.forget(key)

    def _freeze(self, namespace: str, pipeline: Pipeline | None) -> str | None:
        name = freeze_name(pipeline.metadata.name) if pipeline is not None else ""
        gate = self._caches.gates.get(namespace, name) if name else None
        return (gate["spec"].get("message") or "") if gate is not None and is_freeze(labels_of(gate)) else None

    def _holds(self, namespace: str, pipeline: Pipeline | None) -> dict[str, str]:
        if pipeline is None:
            return {}
        name, found = pipeline.metadata.name, {}
        for environment in (each.name for each in pipeline.spec.environments):
            gate = self._caches.gates.get(namespace, hold_name(name, environment))
            if gate is not None and is_hold(gate, name, environment):
                found[environment] = str(gate["spec"].get("exceptBundle") or "")
        return found

    def _rivals(self, current: JsonObject, label: str) -> Iterator[JsonObject]:
        """Yield the Bundles that a decision depends on: those that have started, and a newer and an older pending one.

        A Pipeline may have thousands that are pending; the last that was heard of is most likely the newest.
        """
        key, own = key_of(current), self._numbers.order(current)
        for bundle in self._caches.started(key.namespace, label):
            if key_of(bundle) != key and _type(bundle) == _type(current):
                yield bundle
        pending = self._caches.pending(key.namespace, label)
        newer = (each for each in reversed(pending) if self._numbers.order(each) > own)
        older = (each for each in pending if self._numbers.order(each) < own)
        for found in (newer, older):
            # One may have a Graph already while its status has no phase.
            yield from islice((each for each in found if _type(each) == _type(current) and not has_started(each)), 1)

    def _contender(self, bundle: JsonObject) -> Contender:
        """Return a Bundle as the others see it; a Pipeline has many that have not changed since the last look."""
        metadata, order = bundle["metadata"], self._numbers.order(bundle)
        key, graph = key_of(bundle), self._caches.graphs.get(metadata["namespace"], metadata["name"])
        known = self._contenders.get(key)
        if known is None or known.bundle is not bundle or known.graph is not graph or known.contender.created != order:
            known = self._contenders[key] = _Known(bundle, graph, self._read_contender(bundle, graph, order))
        contender = known.contender
        standings = self._admissions.fill_in(bundle, contender.standings)
        return contender if standings is contender.standings else replace(contender, standings=standings)

    def _read_contender(self, bundle: JsonObject, graph: JsonObject | None, order: Order) -> Contender:
        metadata, status = bundle["metadata"], bundle.get("status") or {}
        if graph is not None and graph["metadata"]["uid"] != (status.get("graph") or {}).get("uid"):
            graph = None
        phase = status.get("phase")
        return Contender(
            name=metadata["name"],
            created=order,
            standings=standings_of(bundle),
            requests=orders_of(bundle),
            pinned=(metadata.get("annotations") or {}).get(ANNOTATION_PIN) == "true",
            rolls_back="rollback" in (bundle["spec"].get("intent") or {}),
            pending=is_pending(bundle),
            has_graph=graph is not None or phase == "Promoting",
            read_upstreams=lambda: read_topology(graph).upstreams if graph is not None else {},
        )


@dataclass(frozen=True, slots=True)
class _Known:
    """A contender, and what it was read from."""

    bundle: JsonObject
    graph: JsonObject | None
    contender: Contender


def _type(bundle: JsonObject) -> object:
    return bundle["spec"].get("type")


def _made_by(graph: JsonObject | None, step: JsonObject) -> bool:
    """Return whether the Graph controls the step: a step of that Bundle can be made by everybody."""
    owner = controller_of(step, GRAPH)
    return graph is not None and owner is not None and owner.uid == graph["metadata"]["uid"]
