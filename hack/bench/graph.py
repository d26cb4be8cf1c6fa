"""Measure the Graph engine: one Graph, many Graphs, and many gates that wait for a time.

    python -m hack.bench.graph                  run it after a change of the Graph engine or of gates
    python -m hack.bench.graph calls starts     only some parts: `calls`, `starts`, `gates`

`calls`: the median CPU time of one call, of objects in memory; a walk is measured after a change of one object. The
minimum beside it is the figure of an undisturbed machine.
`starts`: the CPU time and memory of the engine, a process of its own, on the API server of the local plane, another
process. It starts on Graphs without any object, and again when all objects exist; then nothing happens for a minute.
`gates`: the CPU time of controller and agent in a minute in which PolicyGates wait for a time that does not come.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hack.bench import subjects
from hack.bench.subjects import Subject, difference, run_beside_tool, run_module, run_subject
from hack.bench.team import NAMESPACE as DEFAULT
from hack.bench.team import Site, Team
from kardinal.graph.compile import compile_graph
from kardinal.graph.identity import ObjectKey
from kardinal.graph.selection import Selection
from kardinal.graph.walk_types import Seen
from kardinal.kube import Client, load_connection
from kardinal.objects import CONFIG_MAP, GRAPH, JsonObject, Key
from kardinal.objects.label_selectors import parse_selector
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.runtime import ChangeKind, Event, KeyMemory
from kardinal_controller.graphs.interests import Interests
from kardinal_local.stack import install
from tests.graph.cluster import NAMESPACE, Cluster, Engine, config, status
from tests.graph.promotions import promotion_of, until_prod, verify

FEW = 5
MANY = 5000

IDLE_SECONDS = 60.0
QUIET_SECONDS = 10.0
QUIET_CPU = 0.05
CLIENTS = 16
PIPELINES = 1250
TIMED = (
    "bundle.upstreamSoakMinutes >= 6000",
    "bundle.upstreamSoakMinutes >= 9000 && schedule.hour >= 9",
    'bundle.upstreamSoakMinutes >= 9000 || schedule.inWindow("Wed 03:00-03:01")',
    'schedule.inWindow("Wed 03:00-03:01")',
    'schedule.inWindow("Wed 03:00-03:01") && !schedule.isWeekend',
    'schedule.dayOfWeek == "Wednesday" && schedule.hour == 3',
    'now() >= timestamp("2100-01-01T00:00:00Z")',
    'now() - timestamp("2100-01-01T00:00:00Z") > duration("1h")',
)
"""The expressions of gates that stay closed for as long as this takes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: the seconds of CPU of each call."""

    name: str
    seconds: Sequence[float]
    goal: float

    def __str__(self) -> str:
        middle = statistics.median(self.seconds)
        missed = "" if middle <= self.goal else "   MISSED"
        return (
            f"{middle * 1e3:9.3f} ms ({min(self.seconds) * 1e3:.3f})   goal {self.goal * 1e3:7.3f} ms   "
            f"{self.name}{missed}"
        )


def timed(
    function: Callable[[], object], *, before: Callable[[], object] | None = None, times: int = 30
) -> Sequence[float]:
    """Return the CPU time of each call; `before` runs before each call, and is not measured."""
    taken = []
    for _ in range(times):
        if before is not None:
            before()
        begun = time.thread_time()
        function()
        taken.append(time.thread_time() - begun)
    return taken


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


def lookup(graphs: int) -> Sequence[float]:
    found = interests(graphs)
    labels = {"kardinal.io/type": "freeze", "kardinal.io/pipeline": "app-3"}
    metadata = {"name": "app-3-freeze", "namespace": NAMESPACE, "resourceVersion": "7", "labels": labels}
    event = Event(ChangeKind.UPDATED, Key(NAMESPACE, "app-3-freeze"), {"metadata": metadata}, {"metadata": metadata})
    return timed(lambda: found.concerned(POLICY_GATE, event), times=1000)


def calls() -> None:
    """Print the cost of one Graph."""
    small = promotion()
    spec = {"nodes": small.nodes}
    large = chain(1000)
    of_small, of_large = (compile_graph({"nodes": engine.nodes}) for engine in (small, large))
    for row in (
        Row("compile the Graph of three environments, its expressions known", timed(lambda: compile_graph(spec)), 5e-4),
        Row(
            "walk it after one change",
            timed(lambda: small.pass_over(of_small), before=lambda: verify(small.cluster, "prod")),
            1e-3,
        ),
        Row(
            "walk a Graph of 1,000 nodes after one change",
            timed(lambda: large.pass_over(of_large), before=lambda: status(large.cluster, "n500", y="1"), times=10),
            2e-2,
        ),
        Row(f"find the Graph of a change beside {FEW} Graphs", lookup(FEW), 5e-5),
        Row(f"find the Graph of a change beside {MANY:,} Graphs", lookup(MANY), 5e-5),
    ):
        print(row)


# Many Graphs.


def chained(name: str, nodes: int) -> JsonObject:
    """Return a Graph of ConfigMaps that each read the one before, and of all that other people have marked."""
    watch = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"selector": {"graph": name}}}
    listed: list[JsonObject] = [{"id": "marked", "watch": watch}]
    for number in range(nodes - 1):
        data = {"text": f"${{n{number - 1}.metadata.name}} and ${{string(size(marked))}}"} if number else {}
        ready = [f"${{n{number}.metadata.uid != ''}}"]
        listed.append(config(f"n{number}", data, name=f"{name}-{number}", readyWhen=ready))
    return {
        "apiVersion": GRAPH.api_version,
        "kind": GRAPH.kind,
        "metadata": {"name": name, "namespace": DEFAULT},
        "spec": {"nodes": listed},
    }


async def together(make: Callable[[Any], Awaitable[object]], items: Iterable[Any]) -> None:
    """Call `make` with each item, several at once."""
    waiting = iter(items)

    async def work() -> None:
        for item in waiting:
            await make(item)

    await asyncio.gather(*(work() for _ in range(CLIENTS)))


async def quiet(cluster: subjects.Cluster) -> None:
    """Return when the programs have asked nothing for a while, and have not been at work either."""
    before = -1
    spent = 0.0
    while (asked := (await cluster.requests()).total()) != before or cluster.programs.cpu() - spent > QUIET_CPU:
        before = asked
        spent = cluster.programs.cpu()
        await asyncio.sleep(QUIET_SECONDS)


async def idle_minute(cluster: subjects.Cluster) -> tuple[float, int]:
    """Return the CPU seconds of the programs in a minute, and the writes to the API server."""
    before = await cluster.requests()
    spent = cluster.programs.cpu()
    await asyncio.sleep(IDLE_SECONDS)
    asked = difference(await cluster.requests(), before)
    for request, count in asked.items():
        print(f"    {count:>6} {request.verb} {request.resource} by {request.user}")
    return cluster.programs.cpu() - spent, sum(count for request, count in asked.items() if request.writes)


async def start(plane: Subject, title: str) -> None:
    """Start the engine, and print what it takes until it has no more to do, and a minute after that."""
    async with run_module("hack.bench.engine", str(plane.kubeconfig)) as engine:
        cluster = subjects.Cluster(plane, engine)
        await quiet(cluster)
        spent = engine.cpu()
        memory = engine.memory()
        idle, writes = await idle_minute(cluster)
    print(f"{spent:9.1f} s {memory:6.0f} MB   {title}; a minute after it {idle:.2f} s, {writes} writes", flush=True)


async def starts() -> None:
    """Print the cost of the engine's start: of 100 Graphs (case A90), and of thousands."""
    for graphs, nodes, goal in ((100, 20, 10), (MANY, 9, 30)):
        async with AsyncExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kardinal-bench-")))
            plane = await stack.enter_async_context(run_subject("plane", directory / "plane"))
            connection = await load_connection(plane.kubeconfig)
            client = await stack.enter_async_context(Client(connection, user_agent="kardinal-bench"))
            await install(client)
            await together(partial(client.create, GRAPH), (chained(f"g{number}", nodes) for number in range(graphs)))
            await start(plane, f"start on {graphs:,} new Graphs of {nodes} nodes")
            await start(plane, f"start again, where all objects exist: goal {goal} s, 600 MB, 0 writes")


# Many gates.


def gate_template(number: int, expression: str) -> JsonObject:
    labels = {"kardinal.io/applies-to": "staging"}
    return {
        "apiVersion": POLICY_GATE.api_version,
        "kind": POLICY_GATE.kind,
        "metadata": {"name": f"timed-{number}", "namespace": DEFAULT, "labels": labels},
        "spec": {"expression": expression},
    }


async def gates() -> None:
    """Print the cost of an idle minute in which 10,000 gates wait, and of the same Bundles before that."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kardinal-bench-")))
        site = Site("app", directory / "gitops.git", (directory / "gitops.git").as_uri())
        await asyncio.to_thread(site.create, PIPELINES)
        cluster = await stack.enter_async_context(run_beside_tool(directory, [site.directory], api="plane"))
        connection = await load_connection(cluster.kubeconfig)
        client = await stack.enter_async_context(Client(connection, user_agent="kardinal-bench"))
        team = Team(client, site)
        for number, expression in enumerate(TIMED):
            await client.create(POLICY_GATE, gate_template(number, expression))
        await team.start(await team.grow(PIPELINES))
        await quiet(cluster)
        number = len((await client.list(POLICY_GATE, DEFAULT)).items) - len(TIMED)
        spent, writes = await idle_minute(cluster)
    share = spent / IDLE_SECONDS
    print(f"{share:9.2%}   goal 1 %   CPU while {number:,} gates wait for a time, {writes} writes in a minute")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the Graph engine.")
    parser.add_argument("parts", nargs="*", choices=("calls", "starts", "gates"), default=["calls", "starts", "gates"])
    parts = parser.parse_args().parts
    if "calls" in parts:
        calls()
    if "starts" in parts:
        asyncio.run(starts())
    if "gates" in parts:
        asyncio.run(gates())


if __name__ == "__main__":
    main()
