"""Promote Bundles with the whole of kardinal, without and beside viewers of the page, in turns.

The processes are those of `hack.bench.promotion`: a plane, the programs, and the simulated GitOps tool, with the
repository by its path. The viewers need processor time of the same machine, which slows down everything on it; the
processor time of the programs for a promotion does not have that.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from hack.bench.subjects import Subject, run_module, run_subject, run_tool
from hack.bench.team import ENVIRONMENTS, Site, Team
from hack.bench.ui.viewers import connected
from kardinal.kube import Client, load_connection

__all__ = ["Pace", "measure_throughput"]

SETTLE = 2.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Promotions a minute by the clock, and the seconds of processor time of controller and agent for one of them."""

    a_minute: float
    cpu: float


async def measure_throughput(*, viewers: int, pipelines: int, rounds: int) -> tuple[Pace, Pace]:
    """Return the pace without viewers and beside viewers, the median of the rounds of each."""
    with tempfile.TemporaryDirectory(prefix="kardinal-bench-") as name:
        directory = Path(name)
        site = Site("path", directory / "path.git", (directory / "path.git").as_uri())
        await asyncio.to_thread(site.create, pipelines)
        async with AsyncExitStack() as stack:
            plane = await stack.enter_async_context(run_subject("plane", directory / "plane"))
            kubeconfigs = plane.kubeconfig.parent
            arguments = ("programs", str(directory / "programs"), str(kubeconfigs))
            programs = await stack.enter_async_context(run_module("hack.bench.ui.serve", *arguments))
            await stack.enter_async_context(run_tool(kubeconfigs / "kubeconfig.simulator", [site.directory]))
            connection = await load_connection(programs.kubeconfig)
            client = await stack.enter_async_context(Client(connection, user_agent="kardinal-bench"))
            team = Team(client, site)
            names = await team.grow(pipelines)
            # The first promotions make the mirror of the repository.
            await team.walk(names)
            alone = []
            beside = []
            for _ in range(rounds):
                alone.append(await _walk(team, names, programs))
                async with connected(programs.answer["url"], viewers):
                    beside.append(await _walk(team, names, programs))
            return _median(alone), _median(beside)


async def _walk(team: Team, names: list[str], programs: Subject) -> Pace:
    await asyncio.sleep(SETTLE)
    before = programs.cpu()
    promotions = len(names) * len(ENVIRONMENTS)
    a_minute = promotions / await team.walk(names) * 60
    await asyncio.sleep(SETTLE)
    return Pace(a_minute, (programs.cpu() - before) / promotions)


def _median(paces: list[Pace]) -> Pace:
    return Pace(statistics.median(each.a_minute for each in paces), statistics.median(each.cpu for each in paces))
