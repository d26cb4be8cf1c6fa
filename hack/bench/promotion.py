"""Measure the cost of promotions: time, API writes, CPU and memory, for local and HTTP repositories and a Git script.

    python -m hack.bench.promotion [--api plane|real] [--most 200]

API server, programs, Git server and the simulated GitOps tool are separate processes. This process creates Bundles and
watches them, and reads CPU time and memory of the programs from the operating system. All Pipelines have three
environments in one of two repositories. A run is on one machine at one time: compare only figures of the same run. The
cost of many Pipelines is measured by `hack/bench/fleet.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.bench.baseline import promotions_a_minute
from hack.bench.subjects import PROGRAMS, Cluster, Requests, difference, run_beside_tool, run_git_server
from hack.bench.team import ENVIRONMENTS, Site, Team
from kardinal.clock import SystemClock
from kardinal.kube import Client, load_connection

WALKS = 12
"""The number of Bundles that are promoted one after the other."""
TOGETHER = 20
BASELINES = 30
"""The number of promotions by the script."""
SETTLE = 2.0
"""The time in seconds for requests after a Bundle is Verified, such as Events."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one site: its title, its value, and its goal if it has one."""

    what: str
    figure: str
    goal: str = ""


async def _one_after_the_other(cluster: Cluster, team: Team) -> tuple[list[Row], Requests]:
    """Measure promotions of one Pipeline, one after the other, without other load."""
    (name,) = await team.grow(1)
    await team.walk([name])
    await asyncio.sleep(SETTLE)
    before = await cluster.requests()
    programs = cluster.programs
    total = programs.cpu()
    own = programs.cpu(children=False)
    async with team.watched() as moments:
        began = time.perf_counter()
        walks = [await team.walk([name]) for _ in range(WALKS)]
        pace = WALKS * len(ENVIRONMENTS) / (time.perf_counter() - began) * 60
        await asyncio.sleep(SETTLE)
    promotions = WALKS * len(ENVIRONMENTS)
    total = programs.cpu() - total
    own = programs.cpu(children=False) - own
    requests = difference(await cluster.requests(), before)
    mine = [(request, count) for request, count in requests.items() if request.user == PROGRAMS]
    writes = sum(count for request, count in mine if request.writes)
    reads = sum(count for request, count in mine) - writes
    return [
        Row(f"Bundle to {len(ENVIRONMENTS)} x Verified, median", f"{statistics.median(walks):.2f} s", "<= 0.5 s"),
        Row(
            "upstream Verified to commit downstream, median",
            f"{statistics.median(moments.lags()) * 1000:.0f} ms",
            "<= 100 ms",
        ),
        Row("CPU of controller and agent for a promotion", f"{total / promotions:.3f} s", "<= 0.04 s"),
        Row("    of it in the processes of git", f"{(total - own) / promotions:.3f} s"),
        Row("API writes of controller and agent for a promotion", f"{writes / promotions:.1f}", "<= 6"),
        Row("API reads of them", f"{reads / promotions:.1f}"),
        Row("promotions a minute, 1 Pipeline", f"{pace:.0f}", "1500"),
    ], requests


async def _together(team: Team, pipelines: int) -> list[Row]:
    """Measure the promotions of one Bundle for each of this number of Pipelines at once."""
    names = await team.grow(pipelines)
    await asyncio.sleep(SETTLE)
    pace = pipelines * len(ENVIRONMENTS) / await team.walk(names) * 60
    await asyncio.sleep(SETTLE)
    return [Row(f"promotions a minute, {pipelines} Pipelines", f"{pace:.0f}", "1500")]


async def _script(site: Site, directory: Path) -> list[Row]:
    """Measure the script. Its commits have tags of no Bundle, so only the simulated GitOps tool reacts to them."""
    rows = []
    for title, kept in (("a new clone each", False), ("a kept clone", True)):
        clones = directory / f"{site.name}-{kept}"
        paths = site.paths(BASELINES // len(ENVIRONMENTS))
        pace = await asyncio.to_thread(promotions_a_minute, site.url, paths, clones, kept=kept)
        rows.append(Row(f"a script's promotions a minute, {title}", f"{pace:.0f}"))
    return rows


def _print(columns: Sequence[Sequence[Row]]) -> None:
    for rows in zip(*columns, strict=True):
        figures = "".join(f"{row.figure:>12}" for row in rows)
        print(f"{rows[0].what:<56}{figures}" + (f"   (goal {rows[0].goal})" if rows[0].goal else ""), flush=True)


def _print_writes(columns: Sequence[Requests]) -> None:
    """Print the writes per promotion by user, verb and resource."""
    promotions = WALKS * len(ENVIRONMENTS)
    writes = {request for column in columns for request in column if request.writes}
    for request in sorted(writes, key=lambda each: (each.user != PROGRAMS, -columns[0][each], each)):
        figures = "".join(f"{column[request] / promotions:12.2f}" for column in columns)
        print(f"    {request.user:<22} {request.verb + ' ' + request.resource:<45}"[:56].ljust(56) + figures)


async def _measure(directory: Path, *, api: str, most: int) -> None:
    root = directory / "git"
    root.mkdir()
    print(f"promotions on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(f"{SystemClock().now():%Y-%m-%d}: API server {api}, load {os.getloadavg()[0]:.1f}\n")
    async with run_git_server(root) as (_, url):
        by_path = Site("path", root / "path.git", (root / "path.git").as_uri())
        over_http = Site("http", root / "http.git", f"{url}/http.git")
        sites = (by_path, over_http)
        for site in sites:
            await asyncio.to_thread(site.create, max(most, TOGETHER))
        async with (
            run_beside_tool(directory, [site.directory for site in sites], api=api) as cluster,
            Client(await load_connection(cluster.kubeconfig), user_agent="kardinal-bench") as client,
        ):
            teams = [Team(client, site) for site in sites]
            await asyncio.sleep(SETTLE)
            print(f"{'':<56}{'by path':>12}{'over HTTP':>12}")
            print(f"memory of controller and agent, idle: {cluster.programs.memory():.0f} MB")
            walks = [await _one_after_the_other(cluster, team) for team in teams]
            _print([rows for rows, _ in walks])
            _print_writes([requests for _, requests in walks])
            for pipelines in (TOGETHER, most):
                _print([await _together(team, pipelines) for team in teams])
            print(f"memory of controller and agent afterwards: {cluster.programs.memory():.0f} MB")
        _print([await _script(site, directory) for site in sites])


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what promotions cost.")
    parser.add_argument("--api", choices=("plane", "real"), default="plane", help="the API server")
    parser.add_argument("--most", type=int, default=200, help="Pipelines that promote at once")
    with tempfile.TemporaryDirectory(prefix="kardinal-bench-") as directory:
        asyncio.run(_measure(Path(directory), **vars(parser.parse_args())))


if __name__ == "__main__":
    main()
