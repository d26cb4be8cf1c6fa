"""Everything that the next decision about a Bundle depends on, read at one moment.

`Observer` is the only reader: it takes the Bundle, its Pipeline, its siblings, its Graph and its steps from the
informers, and adds the effects of the present run, which the informers may not show yet. It returns `Facts`, which hold
data alone; the rules on them are in `rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from kardinal.clock import Clock
from kardinal.objects import GRAPH, JsonObject, Key, controller_of, key_of, labels_of
from kardinal.promotion.api import Bundle, Pipeline, PromotionStep
from kardinal.promotion.api.bundle import BundleStatus, EnvironmentStatus
from kardinal.promotion.api.names import ANNOTATION_PIN, freeze_name, hold_name
from kardinal.promotion.api.resolved import unpinned_images
from kardinal.promotion.api.stored import StoredModels
from kardinal.promotion.policy.hold_gate import is_hold
from kardinal.promotion.policy.matching import is_freeze
from kardinal.promotion.translation.drift import NO_DRIFT, Drift, drift_of
from kardinal.promotion.translation.errors import PromotionError
from kardinal.promotion.translation.topology import read_topology
from kardinal.runtime import KeyMemory
from kardinal_controller.bundles.contenders import Contender, Order, orders_of, standings_of
from kardinal_controller.bundles.graphs import GraphKeeper, has_recorded_spec
from kardinal_controller.bundles.order import Admissions, SequenceNumbers, Start, Starts
from kardinal_controller.bundles.requests import unseen
from kardinal_controller.bundles.rollback import recorded_before
from kardinal_controller.bundles.tags import Tags
from kardinal_controller.caches import Caches, has_started, is_pending, pipeline_label

__all__ = ["Facts", "Observer", "RunEffects"]

_COMPARED = frozenset(["Promoting", "Failed"])
"""Phases in which the Graph is compared with the present Pipeline; in the others the Bundle has no work under way."""


_NOT_ASKED = "tags are not looked up: that needs --allow-registries"


@dataclass(frozen=True, slots=True)
class RunEffects:
    """The effects of the present run so far; the caches may not show them yet."""

    graph: JsonObject | None = None
    """The Graph, if this run has created it or looked whether it must be extended."""
    created: bool = False
    """Whether the Graph was created."""
    refusal: PromotionError | None = None
    """Why the resources could not be translated to a Graph."""
    rolled_back: Mapping[str, str] = field(default_factory=dict)
    """The name of the rollback that was created for an environment, by environment."""


_NOTHING = RunEffects()


@dataclass(frozen=True, slots=True)
class Facts:
    """A Bundle, the objects that a decision about it depends on, and the effects of the present run."""

    bundle: Bundle
    """The Bundle of the API server, with its sequence number and the digests of its tags filled in."""
    stored: BundleStatus
    """The status in the API server: from the cache, or from the last write of this run."""
    label: str
    """The Pipeline as a label value; empty where the Bundle names none."""
    pipeline: Pipeline | None
    own: Contender
    """The Bundle itself, in the form in which other Bundles see it."""
    siblings: Sequence[Contender]
    """The other Bundles of the Pipeline and type that have started, and a newer one that is about to."""
    current: JsonObject
    """The JSON of the Bundle, from the informer or from the last write of this run."""
    peers: Sequence[JsonObject]
    """The other Bundles of the Pipeline that have started, of all types."""
    graph: JsonObject | None
    """The Graph that the status of this Bundle records; None if there is none."""
    steps: Mapping[str, PromotionStep]
    """The PromotionStep of each environment that has one."""
    now: datetime
    monotonic: float
    """Seconds of the monotonic clock at `now`."""
    write_by: float | None = None
    """The latest time to write the progress that an earlier run has put off, in seconds of the monotonic clock."""
    latest_start: Start | None = None
    """The latest start in the Pipeline and type; None if it is not known, or is the start of this Bundle itself."""
    next_order: Order | None = None
    """The order of the first new request; None where there is none."""
    freeze: str | None = None
    """The message of the freeze of its Pipeline; None where there is no freeze."""
    held: Mapping[str, str] = field(default_factory=dict)
    """Environment with a hold -> the name of the only Bundle that the hold lets through."""
    drift: Drift = NO_DRIFT
    """The differences between its Graph and the Graph that would be made today; empty unless it is under way."""
    offered: JsonObject | None = None
    """The Graph that a person has written for this Bundle and that it does not control; None if there is none."""
    unresolved: bool = False
    """Whether the tags of the Bundle must be looked up before it starts."""
    checks_tags: bool = False
    """Whether the tags of the Bundle are looked up again before it starts in an environment."""
    done: RunEffects = _NOTHING
    """The effects of the present run."""


class Observer:
    """Reads the facts about Bundles from the informers."""

    def __init__(
        self, caches: Caches, graphs: GraphKeeper, *, clock: Clock, tags: Tags | None, memory: KeyMemory
    ) -> None:
        self._caches = caches
        self._graphs = graphs
        self._clock = clock
        self._tags = tags
        self._numbers = SequenceNumbers()
        self._admissions = Admissions(memory)
        self._starts = Starts()
        self._drifts = _DriftReader(graphs, memory)
        self._bundles = StoredModels(Bundle)
        self._pipelines = StoredModels(Pipeline)
        self._steps = StoredModels(PromotionStep)
        self._contenders: dict[Key, _Known] = memory.map()

    def observe(self, current: JsonObject, *, write_by: float | None, done: RunEffects = _NOTHING) -> Facts:
        """Return the facts about the Bundle `current`; `done` has the effects of this run so far."""
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
        graph = done.graph or self._graphs.find(bundle)
        steps = [self._steps.of(step) for step in self._caches.steps_of(key) if _made_by(graph, step)]
        pipeline = self._pipelines.of(stored) if stored is not None else None
        return Facts(
            bundle=bundle,
            stored=status,
            label=label,
            pipeline=pipeline,
            own=self._contender(current),
            siblings=self._siblings(current),
            current=current,
            peers=[each for each in self._caches.started(key.namespace, label) if key_of(each) != key] if label else [],
            graph=graph,
            offered=self._graphs.offered(bundle) if bundle.spec.intent.graph == "manual" else None,
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
            done=done,
        )

    def _siblings(self, current: JsonObject) -> list[Contender]:
        label = pipeline_label(current)
        return [self._contender(each) for each in self._rivals(current, label)] if label else []

    def _with_digests(self, bundle: Bundle) -> tuple[Bundle, bool]:
        """Return the Bundle with the digests found for its tags, and whether its tags must still be looked up."""
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
        """Return a rollback that starts with the digests that the restored Bundle has recorded.

        Any other Bundle is returned unchanged. It is called where no registry is asked for the digests.
        """
        started = bundle.status.graph_ref is not None or bundle.status.artifacts is not None
        if started or not (recorded := recorded_before(bundle, self._caches)):
            return bundle
        found = tuple(each.model_copy(update={"message": _NOT_ASKED}) for each in recorded)
        return bundle.model_copy(update={"status": bundle.status.model_copy(update={"artifacts": found})})

    def _next_order(self, current: JsonObject, bundle: Bundle) -> Order | None:
        label = pipeline_label(current)
        count = len(unseen(bundle))
        bundles = self._caches.bundles_of(bundle.metadata.namespace, label) if label and count else ()
        return self._numbers.reserve(bundles, count) if bundles else None

    def note(self, current: JsonObject, status: BundleStatus) -> None:
        """Remember the admissions in a status that is about to be written, until the informer shows them."""
        self._admissions.note(current, status.environments)

    def note_start(self, current: JsonObject) -> None:
        """Remember that the Bundle gets its Graph now."""
        self._starts.note(current, self._clock.monotonic())

    def _freeze(self, namespace: str, pipeline: Pipeline | None) -> str | None:
        name = freeze_name(pipeline.metadata.name) if pipeline is not None else ""
        gate = self._caches.gates.get(namespace, name) if name else None
        return (gate["spec"].get("message") or "") if gate is not None and is_freeze(labels_of(gate)) else None

    def _holds(self, namespace: str, pipeline: Pipeline | None) -> dict[str, str]:
        if pipeline is None:
            return {}
        name = pipeline.metadata.name
        found = {}
        for environment in (each.name for each in pipeline.spec.environments):
            gate = self._caches.gates.get(namespace, hold_name(name, environment))
            if gate is not None and is_hold(gate, name, environment):
                found[environment] = str(gate["spec"].get("exceptBundle") or "")
        return found

    def _rivals(self, current: JsonObject, label: str) -> Iterator[JsonObject]:
        """Yield the Bundles that a decision depends on: those that have started, and a newer and an older pending one.

        A Pipeline may have thousands of pending Bundles; the one that came last is most likely the newest.
        """
        key = key_of(current)
        own = self._numbers.order(current)
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
        """Return a Bundle as the others see it; read again only if it has changed, because a Pipeline may have many."""
        metadata = bundle["metadata"]
        order = self._numbers.order(bundle)
        key = key_of(bundle)
        graph = self._caches.graphs.get(metadata["namespace"], metadata["name"])
        known = self._contenders.get(key)
        if known is None or known.bundle is not bundle or known.graph is not graph or known.contender.created != order:
            known = self._contenders[key] = _Known(bundle, graph, self._read_contender(bundle, graph, order))
        contender = known.contender
        standings = self._admissions.fill_in(bundle, contender.standings)
        return contender if standings is contender.standings else replace(contender, standings=standings)

    def _read_contender(self, bundle: JsonObject, graph: JsonObject | None, order: Order) -> Contender:
        metadata = bundle["metadata"]
        status = bundle.get("status") or {}
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
    """A contender, and the objects that it was read from."""

    bundle: JsonObject
    graph: JsonObject | None
    contender: Contender


def _type(bundle: JsonObject) -> object:
    return bundle["spec"].get("type")


def _made_by(graph: JsonObject | None, step: JsonObject) -> bool:
    """Return whether the Graph controls the step; other users may create PromotionSteps that name the Bundle."""
    owner = controller_of(step, GRAPH)
    return graph is not None and owner is not None and owner.uid == graph["metadata"]["uid"]


class _DriftReader:
    """Compares the Graphs of Bundles under way with the Graphs that would be made today.

    A comparison translates every environment that the Bundle has not come to, which is too expensive for each run. So
    its result is kept until one of its inputs changes.
    """

    def __init__(self, graphs: GraphKeeper, memory: KeyMemory) -> None:
        self._graphs = graphs
        self._known: dict[Key, tuple[object, Drift]] = memory.map()

    def read(self, bundle: Bundle, graph: JsonObject | None, pipeline: Pipeline | None) -> Drift:
        """Return the differences; none for a Bundle that is not under way or whose Pipeline is gone."""
        metadata = bundle.metadata
        key = Key(metadata.namespace, metadata.name)
        if graph is None or pipeline is None or bundle.status.phase not in _COMPARED:
            self._known.pop(key, None)
            return NO_DRIFT
        inputs = (
            (graph["metadata"]["uid"], graph["metadata"].get("generation")),
            (pipeline.metadata.uid, pipeline.metadata.generation),
            (metadata.generation, *(_over(entry) for entry in bundle.status.environments.items())),
            tuple(gate["metadata"].get("resourceVersion") for gate in self._graphs.templates_known(pipeline)),
        )
        known = self._known.get(key)
        if known is None or known[0] != inputs:
            known = self._known[key] = (inputs, self._compare(bundle, graph, pipeline))
        return known[1]

    def _compare(self, bundle: Bundle, graph: JsonObject, pipeline: Pipeline) -> Drift:
        if bundle.spec.intent.graph == "manual" or not has_recorded_spec(graph, bundle):
            # A person wrote it, or another user changed it: then it is not walked, and its nodes may have any shape.
            return NO_DRIFT
        return drift_of(graph, pipeline, bundle, self._graphs.gates_known(pipeline))


def _over(named: tuple[str, EnvironmentStatus]) -> tuple[str, str | None, str | None]:
    """Return the parts of an entry that a comparison depends on; all states before the end count as equal."""
    name, entry = named
    return name, entry.state if entry.has_ended else None, entry.displaced_by
