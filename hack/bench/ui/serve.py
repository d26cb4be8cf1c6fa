"""Run a process under test: the page alone on a fleet of Pipelines, or the programs with the page.

    python -m hack.bench.ui.serve fleet PIPELINES [--built DIRECTORY]
    python -m hack.bench.ui.serve programs DIRECTORY KUBECONFIGS

It prints its addresses as JSON on standard output. Of a fleet, each line on standard input is a command:

    {"do": "promote", "rate": 1000, "seconds": 20, "probes": 5}
    {"do": "change", "times": 10}
    {"do": "wait", "seconds": 2}
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from hack.bench.ui.fleet import Fleet
from kardinal.clock import SystemClock
from kardinal.extensions import load_extensions
from kardinal.kube import Client, ClusterAccess, Connection, load_connection
from kardinal.objects import ResourceType
from kardinal.runtime import Manager
from kardinal.runtime.logging import configure
from kardinal.runtime.process import run
from kardinal.runtime.routes import RouteGroup
from kardinal_agent.options import AgentOptions
from kardinal_controller.caches import Caches
from kardinal_controller.options import ControllerOptions
from kardinal_controller.program import ControlPlane
from kardinal_controller.ui.access import Seat
from kardinal_controller.ui.assets import BUILT
from kardinal_controller.ui.model import Viewer
from kardinal_controller.ui.server import PageServer
from kardinal_local.stack import install

SAMPLED = 0.005
"""The time in seconds between two looks at the event loop."""
ANY = "127.0.0.1:0"


class _Everyone:
    """An access that lets everyone see everything. The header X-Viewer is the name of the user."""

    groups: Sequence[RouteGroup[Any]] = ()

    @asynccontextmanager
    async def authenticated(self, request: web.Request) -> AsyncIterator[Seat]:
        user = request.headers["X-Viewer"]
        viewer = Viewer(
            user=user, groups=[], auth="token", may_act=False, reads_as_viewer=False, namespaces=[], version="bench"
        )
        yield Seat(viewer=viewer, lists=self._lists)

    async def still_valid(self, seat: Seat) -> str:
        return ""

    async def _lists(self, resource: ResourceType, namespace: str) -> bool:
        return True


@dataclass(slots=True)
class _Stalls:
    """The longest times for which the event loop ran nothing else, in seconds.

    `late`: how much later than asked it ran this task, which includes the time that other processes had the processor.
    `busy`: the processor time of its thread between two runs of this task.
    """

    late: float = 0.0
    busy: float = 0.0

    async def sample(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            asked = loop.time() + SAMPLED
            spent = time.thread_time()
            await asyncio.sleep(SAMPLED)
            self.late = max(self.late, loop.time() - asked)
            self.busy = max(self.busy, time.thread_time() - spent)

    def taken(self) -> dict[str, float]:
        """Return the longest ones since the last call."""
        found = {"late": self.late, "busy": self.busy}
        self.late = self.busy = 0.0
        return found


async def _serve_fleet(pipelines: int, built: Path) -> None:
    connection = Connection(ClusterAccess("https://127.0.0.1:1"))
    async with Client(connection, user_agent="kardinal-bench") as client:
        caches = Caches(Manager(client, clock=SystemClock(), name="bench"))
        fleet = Fleet(caches, pipelines)
        fleet.create()
        stalls = _Stalls()
        sampling = asyncio.create_task(stalls.sample())
        page = PageServer(caches, _Everyone(), clock=SystemClock(), address=ANY, directory=built)
        begin = time.monotonic()
        await page.start()
        await page.feed.complete()
        gc.freeze()  # `kardinal local up` does the same when it is ready.
        _say({"url": page.url, "ready": time.monotonic() - begin, "stall": stalls.taken()})
        async for line in _lines():
            stalls.taken()
            await _carry_out(fleet, orjson.loads(line))
            # What was written last is published, too.
            await asyncio.sleep(1)
            _say({"done": True, "stall": stalls.taken()})
        sampling.cancel()
        await page.stop()


async def _carry_out(fleet: Fleet, command: dict[str, Any]) -> None:
    match command["do"]:
        case "promote":
            number = 0
            async for written in fleet.promote(command["rate"], command["seconds"]):
                _say(written)
                number += 1
                if number % command["probes"] == 0:
                    _probe(fleet, number)
        case "change":
            for number in range(command["times"]):
                fleet.change_wide(number)
                await asyncio.sleep(0.3)
        case _:
            await asyncio.sleep(command["seconds"])


def _probe(fleet: Fleet, number: int) -> None:
    at = time.time()
    fleet.probe(number)
    _say({"probe": number, "at": at})


async def _serve_programs(directory: Path, kubeconfigs: Path) -> None:
    """Run the programs as `kardinal_local.stack` does, with a page for 50 users in place of that of one person."""
    await asyncio.to_thread(directory.mkdir, exist_ok=True)
    async with Client(
        await load_connection(kubeconfigs / "kubeconfig.installer"), user_agent="kardinal-local"
    ) as installer:
        await install(installer)
    options = ControllerOptions(
        policy_namespaces=("platform-policies",),
        agent=AgentOptions(allow_local_repositories=True, quote_namespaces=("*",), git_cache_dir=directory / "git"),
        api_address=ANY,
        metrics_address=ANY,
        metrics_auth="none",
        probe_address=ANY,
    )
    extensions = await asyncio.to_thread(load_extensions)
    connection = await load_connection(kubeconfigs / "kubeconfig.controller")
    async with Client(connection, user_agent="kardinal-controller") as client:
        programs = ControlPlane(options, client, clock=SystemClock(), extensions=extensions)
        await programs.start()
        page = PageServer(programs.caches, _Everyone(), clock=SystemClock(), address=ANY)
        await page.start()
        gc.freeze()
        _say({"kubeconfig": str(kubeconfigs / "kubeconfig"), "url": page.url})
        async for _ in _lines():
            pass
        await page.stop()
        await programs.stop()


async def _lines() -> AsyncIterator[bytes]:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line
    transport.close()


def _say(value: object) -> None:
    print(orjson.dumps(value).decode(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run one process under test.")
    roles = parser.add_subparsers(dest="role", required=True)
    fleet = roles.add_parser("fleet")
    fleet.add_argument("pipelines", type=int)
    fleet.add_argument("--built", type=Path, default=BUILT, help="the directory of the built page")
    programs = roles.add_parser("programs")
    programs.add_argument("directory", type=Path)
    programs.add_argument("kubeconfigs", type=Path)
    chosen = parser.parse_args()
    configure(level="error")
    if chosen.role == "fleet":
        run(_serve_fleet(chosen.pipelines, chosen.built))
    else:
        run(_serve_programs(chosen.directory, chosen.kubeconfigs))


if __name__ == "__main__":
    main()
