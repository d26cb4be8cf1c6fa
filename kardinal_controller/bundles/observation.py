"""Everything that the next decision about a Bundle depends on, read at one moment.

`Observer` is the only place that reads: it takes the Bundle, its Pipeline, its siblings, its Graph and its steps from
the informers. What it returns is a value; the rules on it are in `decide`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.api.bundle import BundleStatus, EnvironmentStatus
from kardinal.objects import GRAPH, JsonObject, controller_of, key_of
from kardinal.runtime import Clock
from kardinal.translation.errors import PromotionError
from kardinal.translation.topology import Topology, read_topology
from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.progress import environments
from kardinal_controller.bundles.supersession import SequenceNumbers
from kardinal_controller.caches import Caches, pipeline_label

__all__ = ["Observation", "Observer"]


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
    siblings: Sequence[Bundle]
    """The Bundles of the Pipeline that may take the place of this one, with their sequence numbers."""
    graph: JsonObject | None
    """The Graph that belongs to this very Bundle, as it was when the run began."""
    steps: Mapping[str, PromotionStep]
    """The PromotionStep of each environment that has one."""
    now: datetime
    monotonic: float
    """Seconds of the monotonic clock at `now`."""
    write_by: float | None = None
    """Until when progress of an earlier run may wait to be written, in seconds of the monotonic clock."""
    outcome: JsonObject | PromotionError | None = None
    """The result of the Create or Extend of this run: the Graph, or why the resources cannot be translated."""

    @cached_property
    def topology(self) -> Topology | None:
        """The environments of the Graph and their order."""
        return read_topology(self.graph) if self.graph is not None else None

    @cached_property
    def environments(self) -> dict[str, EnvironmentStatus]:
        """The entry of each environment as the steps have it now."""
        status = self.bundle.status
        return environments(self.topology, self.steps, status.environments, under_way=not status.has_ended)


class Observer:
    """Reads observations from the informers."""

    def __init__(self, caches: Caches, graphs: GraphKeeper, *, clock: Clock) -> None:
        self._caches = caches
        self._graphs = graphs
        self._clock = clock
        self._numbers = SequenceNumbers()

    def observe(self, current: JsonObject, *, write_by: float | None) -> Observation:
        """Return what can be seen of the Bundle `current`."""
        key = key_of(current)
        label = pipeline_label(current)
        stored = self._caches.pipeline(key.namespace, label) if label else None
        bundle = Bundle.model_validate(current)
        status = bundle.status
        siblings: list[Bundle] = []
        if label:
            if self._numbers.of(current) is None:
                self._numbers.assign(self._caches.bundles_of(key.namespace, label))
            bundle = self._numbers.fill_in(current)
            siblings = [self._numbers.fill_in(rival) for rival in self._rivals(current, label)]
        graph = self._graphs.find(bundle)
        steps = [PromotionStep.model_validate(step) for step in self._caches.steps_of(key) if _made_by(graph, step)]
        return Observation(
            bundle=bundle,
            stored=status,
            label=label,
            pipeline=Pipeline.model_validate(stored) if stored is not None else None,
            siblings=siblings,
            graph=graph,
            steps={step.spec.environment: step for step in steps},
            now=self._clock.now(),
            monotonic=self._clock.monotonic(),
            write_by=write_by,
        )

    def _rivals(self, current: JsonObject, label: str) -> Iterator[JsonObject]:
        """Yield the newer Bundles that a decision depends on: the newest that has started, and one that is pending.

        A Pipeline may have thousands that are pending; the last that was heard of is most likely the newest.
        """
        namespace, own = current["metadata"]["namespace"], self._numbers.age(current)

        def newer(bundle: JsonObject) -> bool:
            return bundle["spec"].get("type") == current["spec"].get("type") and self._numbers.age(bundle) > own

        started = filter(newer, self._caches.started(namespace, label))
        pending = filter(newer, reversed(self._caches.pending(namespace, label)))
        found = max(started, key=self._numbers.age, default=None), next(pending, None)
        yield from (bundle for bundle in found if bundle is not None)


def _made_by(graph: JsonObject | None, step: JsonObject) -> bool:
    """Return whether the Graph controls the step: a step of that Bundle can be made by everybody."""
    owner = controller_of(step, GRAPH)
    return graph is not None and owner is not None and owner.uid == graph["metadata"]["uid"]
