"""Measure the cost of one promotion with few and with many Pipelines, their memory, and the CPU of an idle half minute.

    python -m hack.bench.fleet [--pipelines 1000] [--api plane|real]

Every Pipeline has promoted a Bundle to its first environment, so a scan over all objects would increase the cost of the
next promotion. The repository is local, so the cost is that of controller and agent alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hack.bench.subjects import PROGRAMS, Cluster, Requests, difference, run_beside_tool
from hack.bench.team import ENVIRONMENTS, Site, Team
from kardinal.clock import SystemClock
from kardinal.kube import Client, load_connection

FEW = 10
AT_ONCE = 100
WALKS = 12
SETTLE = 3.0
IDLE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Cost:
    """The average cost of one promotion."""

    walk: float
    """The median time in seconds from the creation of a Bundle until it is Verified."""
    cpu: float
    """The CPU time of controller and agent in seconds."""
    requests: float


async def _cost(cluster: Cluster, team: Team, name: str) -> Cost:
    """Measure promotions of one Pipeline without other load."""
    await team.walk([name])
    await asyncio.sleep(SETTLE)
    before = await cluster.requests()
    spent = cluster.programs.cpu()
    walks = [await team.walk([name]) for _ in range(WALKS)]
    await asyncio.sleep(SETTLE)
    promotions = WALKS * len(ENVIRONMENTS)
    spent = cluster.programs.cpu() - spent
    asked = _of_programs(difference(await cluster.requests(), before))
    return Cost(statistics.median(walks), spent / promotions, asked.total() / promotions)


def _of_programs(requests: Requests) -> Requests:
    return Requests({request: count for request, count in requests.items() if request.user == PROGRAMS})


async def _grow(team: Team, pipelines: int) -> str:
    """Create this number of Pipelines, and promote a Bundle of each; return the name of the first Pipeline."""
    names = await team.grow(pipelines)
    await asyncio.sleep(SETTLE)
    for start in range(0, pipelines, AT_ONCE):
        await team.walk(names[start : start + AT_ONCE], target=ENVIRONMENTS[0])
    return names[0]


def _print(pipelines: int, cost: Cost, cluster: Cluster) -> None:
    print(
        f"{pipelines:>9}{cost.walk:>10.2f} s{cost.cpu * 1000:>8.1f} ms{cost.requests:>10.1f}"
        f"{cluster.programs.memory():>12.0f} MB{cluster.server.memory():>9.0f} MB",
        flush=True,
    )


async def _print_idle(cluster: Cluster) -> None:
    before = await cluster.requests()
    spent = cluster.programs.cpu()
    await asyncio.sleep(IDLE_SECONDS)
    asked = difference(await cluster.requests(), before)
    writes = {request: count for request, count in _of_programs(asked).items() if request.writes}
    spent = cluster.programs.cpu() - spent
    print(f"\n{IDLE_SECONDS:.0f} idle seconds: {sum(writes.values())} API writes (goal 0), {spent:.2f} s of CPU")
    for (user, verb, resource), count in asked.items():
        print(f"    {count:>3} {verb} {resource} by {user}")


async def _measure(directory: Path, *, api: str, pipelines: int) -> None:
    site = Site("app", directory / "gitops.git", (directory / "gitops.git").as_uri())
    await asyncio.to_thread(site.create, pipelines)
    print(f"a fleet on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(f"{SystemClock().now():%Y-%m-%d}: API server {api}, load {os.getloadavg()[0]:.1f}\n")
    async with (
        run_beside_tool(directory, [site.directory], api=api) as cluster,
        Client(await load_connection(cluster.kubeconfig), user_agent="kardinal-bench") as client,
    ):
        team = Team(client, site)
        await asyncio.sleep(SETTLE)
        print(f"idle: controller and agent {cluster.programs.memory():.0f} MB, ", end="")
        print(f"API server {cluster.server.memory():.0f} MB\n")
        print("Pipelines  Bundle to   of one promotion:    memory of       of the")
        print("           Verified    CPU       requests   the programs    API server")
        for number in (FEW, pipelines):
            name = await _grow(team, number)
            _print(number, await _cost(cluster, team, name), cluster)
        await _print_idle(cluster)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a promotion costs beside many Pipelines.")
    parser.add_argument("--api", choices=("plane", "real"), default="plane", help="the API server")
    parser.add_argument("--pipelines", type=int, default=1000)
    with tempfile.TemporaryDirectory(prefix="kardinal-bench-") as directory:
        asyncio.run(_measure(Path(directory), **vars(parser.parse_args())))


if __name__ == "__main__":
    main()
