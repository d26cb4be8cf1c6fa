"""Run the Graph engine alone, as a process under test: every Graph that no other object controls is walked.

    python -m hack.bench.engine KUBECONFIG

It prints one line of JSON when it has read all objects, and ends when its standard input ends.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from kardinal.clock import SystemClock
from kardinal.kube import Client, load_connection
from kardinal.objects import CONFIG_MAP, JsonObject, ResourceType
from kardinal.runtime import Manager, Source
from kardinal.runtime.logging import configure
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs import graph_controller
from kardinal_controller.graphs.ownership import ADMITTED, Admission


class _AllGraphs:
    """Implements `GraphOwner`: no Graph is refused, and all objects are written as this process."""

    resource = None
    kinds = (CONFIG_MAP,)
    makes: Collection[ResourceType] = ()
    records_specs = False

    def __init__(self, client: Client) -> None:
        self._client = client

    def changes(self) -> Sequence[Source]:
        return ()

    async def admission(self, graph: JsonObject) -> Admission:
        return ADMITTED

    def identity(self, graph: JsonObject) -> Client:
        return self._client


async def _run(kubeconfig: Path) -> None:
    clock = SystemClock()
    async with Client(await load_connection(kubeconfig), user_agent="graph-engine") as client:
        manager = Manager(client, clock=clock, name="graph-engine")
        expressions = ExpressionCompiler()
        manager.add(expressions)
        graph_controller(manager, client, clock=clock, owners=[_AllGraphs(client)], expressions=expressions)
        await manager.start()
        gc.collect()
        gc.freeze()  # `Manager.run` does the same when it has started.
        print("{}", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await manager.stop()


if __name__ == "__main__":
    configure(level="error")
    asyncio.run(_run(Path(sys.argv[1])))
