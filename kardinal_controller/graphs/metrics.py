"""The metrics of the Graph engine. No label is chosen by a user, so their number is small and fixed."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kardinal.graph.walk_types import NodeResult, Walk
from kardinal.objects import Key, NodeState
from kardinal.runtime import KeyMemory

__all__ = ["GraphMetrics"]


_SECONDS = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)
_SKIPS = ("input", "gate", "apply")


class GraphMetrics:
    """Counts for one manager, in its own registry."""

    def __init__(self, registry: CollectorRegistry, memory: KeyMemory) -> None:
        self._passes = Counter("kardinal_graph_passes", "Passes over Graphs", registry=registry)
        self._evaluations = Counter(
            "kardinal_graph_node_evaluations",
            "Nodes evaluated, by their state",
            ["state"],
            registry=registry,
        )
        self._skips = Counter("kardinal_graph_node_skips", "Work that passes left out", ["layer"], registry=registry)
        self._expressions = Histogram(
            "kardinal_graph_cel_eval_seconds",
            "Time of all expressions of one pass",
            buckets=_SECONDS,
            registry=registry,
        )
        self.timer_fires = Counter(
            "kardinal_graph_timer_fires", "Walks whose time had come, whatever else happened", registry=registry
        )
        self.compiles = Counter("kardinal_graph_compiles", "Specs of Graphs compiled", ["result"], registry=registry)
        self.compile_seconds = Histogram(
            "kardinal_graph_compile_seconds", "Time to compile one spec", buckets=_SECONDS, registry=registry
        )
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
        for layer in _SKIPS:
            self._skips.labels(layer)
        for state in get_args(NodeState):
            self._nodes.labels(state)
            self._evaluations.labels(state)
        memory.on_drop(lambda graph: self.walked(graph, ()))

    def watch_kinds(self, number: Callable[[], int]) -> None:
        """Serve the number of kinds that are watched while a Graph needs them."""
        self._kinds.set_function(number)

    def passed(self, walk: Walk) -> None:
        """Count a pass: what it has evaluated, and what it has left out.

        The layers: `input`, the result of an earlier pass was made of the same objects; `gate`, a closed gate keeps the
        node from making its object; `apply`, the object of the node stays as it is.
        """
        self._passes.inc()
        self._expressions.observe(walk.expression_seconds)
        for state, number in Tally(outcome.state for outcome in walk.evaluated).items():
            self._evaluations.labels(state).inc(number)
        self._skips.labels("input").inc(len(walk.outcomes) - len(walk.evaluated))
        self._skips.labels("gate").inc(sum(outcome.reason == "Gated" for outcome in walk.evaluated))
        self._skips.labels("apply").inc(sum(map(_is_left, walk.evaluated)))

    def walked(self, graph: Key, states: Iterable[NodeState]) -> None:
        """Note the states of the nodes of a Graph in place of those it had before."""
        now = Tally(states)
        before = self._states.pop(graph, Tally())
        if now:
            self._states[graph] = now
        for state in now.keys() | before.keys():
            self._nodes.labels(state).inc(now[state] - before[state])


def _is_left(outcome: NodeResult) -> bool:
    """Return whether a node has an object that is not applied again."""
    return outcome.kind == "template" and outcome.state in ("Ready", "NotReady") and not outcome.settling
