"""Measure the Graph engine without an API server: compiling, walking, and finding the Graphs of a change.

    python -m hack.bench.graph         run it after a change of `kardinal/graph` or of `kardinal_controller/graphs`

Each row is the median CPU time of one call beside its goal. A walk is measured after a change of one object. The
objects are in memory.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from kardinal.graph.compile import compile_graph
from kardinal.graph.identity import ObjectKey
from kardinal.graph.selection import Selection, parse_selector
from kardinal.graph.walk_types import Seen
from kardinal.objects import CONFIG_MAP, Key
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.runtime import ChangeKind, Event, KeyMemory
from kardinal_controller.graphs.interests import Interests
from tests.graph.cluster import NAMESPACE, Cluster, Engine, config, status
from tests.graph.promotions import promotion_of, until_prod, verify

FEW = 5
MANY = 5000


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; seconds of CPU."""

    name: str
    seconds: float
    goal: float

    def __str__(self) -> str:
        missed = "" if self.seconds <= self.goal else "   MISSED"
        return f"{self.seconds * 1e3:9.3f} ms   goal {self.goal * 1e3:7.3f} ms   {self.name}{missed}"


def median(function: Callable[[], object], *, before: Callable[[], object] | None = None, times: int = 30) -> float:
    """Return the median CPU time of a call; `before` runs before each call, and is not measured."""
    taken = []
    for _ in range(times):
        if before is not None:
            before()
        begun = time.thread_time()
        function()
        taken.append(time.thread_time() - begun)
    return statistics.median(taken)


def promotion() -> Engine:
    """Return the Graph of three environments and two gates, promoted to prod."""
    cluster = Cluster()
    engine = promotion_of(cluster)
    until_prod(cluster, engine)
    return engine


def chain(length: int) -> Engine:
    """Return a Graph whose nodes each read the one before, in columns of ten."""
    nodes = [
        config(f"n{number}", {"x": f"${{n{number - 1}.metadata.name}}"} if number % 10 else {})
        for number in range(length)
    ]
    engine = Engine(Cluster(), *nodes)
    engine.rest()
    return engine


def interests(graphs: int) -> Interests:
    found = Interests(KeyMemory(_NoObjects()))
    for number in range(graphs):
        freezes = {"kardinal.io/type": "freeze", "kardinal.io/pipeline": f"app-{number}"}
        selection = Selection(POLICY_GATE, NAMESPACE, parse_selector(freezes))
        read = ObjectKey(CONFIG_MAP, NAMESPACE, f"setting-{number}")
        found.note(Key(NAMESPACE, f"g-{number}"), Seen(frozenset([read]), frozenset([selection])))
    return found


class _NoObjects:
    def get(self, namespace: str, name: str) -> None:
        return None


def lookup(graphs: int) -> float:
    found = interests(graphs)
    labels = {"kardinal.io/type": "freeze", "kardinal.io/pipeline": "app-3"}
    metadata = {"name": "app-3-freeze", "namespace": NAMESPACE, "resourceVersion": "7", "labels": labels}
    event = Event(ChangeKind.UPDATED, Key(NAMESPACE, "app-3-freeze"), {"metadata": metadata}, {"metadata": metadata})
    return median(lambda: found.concerned(POLICY_GATE, event), times=1000)


def main() -> None:
    small = promotion()
    spec = {"nodes": small.nodes}
    large = chain(1000)
    of_small, of_large = (compile_graph({"nodes": engine.nodes}) for engine in (small, large))
    for row in (
        Row(
            "compile the Graph of three environments, its expressions known", median(lambda: compile_graph(spec)), 5e-4
        ),
        Row(
            "walk it after one change",
            median(lambda: small.pass_over(of_small), before=lambda: verify(small.cluster, "prod")),
            1e-3,
        ),
        Row(
            "walk a Graph of 1,000 nodes after one change",
            median(lambda: large.pass_over(of_large), before=lambda: status(large.cluster, "n500", y="1"), times=10),
            2e-2,
        ),
        Row(f"find the Graph of a change beside {FEW} Graphs", lookup(FEW), 5e-5),
        Row(f"find the Graph of a change beside {MANY:,} Graphs", lookup(MANY), 5e-5),
    ):
        print(row)


if __name__ == "__main__":
    main()
