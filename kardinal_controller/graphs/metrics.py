"""The metrics of the Graph engine. No label is chosen by a user, so their number is small and fixed."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from kardinal.objects import Key, NodeState
from kardinal.runtime import KeyMemory

__all__ = ["GraphMetrics"]


class GraphMetrics:
    """Counts for one manager, in its own registry."""

    def __init__(self, registry: CollectorRegistry, memory: KeyMemory) -> None:
        self.passes = Counter("kardinal_graph_passes", "Passes over Graphs", registry=registry)
        self.compiles = Counter("kardinal_graph_compiles", "Specs of Graphs compiled", ["result"], registry=registry)
        self.applies = Counter("kardinal_graph_applies", "Objects of Graphs applied", ["result"], registry=registry)
        self.prunes = Counter("kardinal_graph_prunes", "Objects of Graphs deleted", ["result"], registry=registry)
        self._nodes = Gauge("kardinal_graph_nodes", "Nodes of Graphs", ["state"], registry=registry)
        self._kinds = Gauge("kardinal_graph_watched_kinds", "Kinds watched while needed", registry=registry)
        self._states: dict[Key, Tally[NodeState]] = {}
        for counter, results in (
            (self.compiles, ("accepted", "refused")),
            (self.applies, ("applied", "refused", "failed")),
            (self.prunes, ("deleted", "failed")),
        ):
            for result in results:
                counter.labels(result)
        for state in get_args(NodeState):
            self._nodes.labels(state)
        memory.on_drop(lambda graph: self.walked(graph, ()))

    def watch_kinds(self, number: Callable[[], int]) -> None:
        """Serve the number of kinds that are watched while a Graph needs them."""
        self._kinds.set_function(number)

    def walked(self, graph: Key, states: Iterable[NodeState]) -> None:
        """Note the states of the nodes of a Graph in place of those it had before."""
        now = Tally(states)
        before = self._states.pop(graph, Tally())
        if now:
            self._states[graph] = now
        for state in now.keys() | before.keys():
            self._nodes.labels(state).inc(now[state] - before[state])
