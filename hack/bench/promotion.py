"""Measure what promotions cost, by path and over HTTP: time, API writes, CPU and memory, beside a script with `git`.

    python -m hack.bench.promotion [--api plane|real] [--most 200]

API server, programs, Git server and what stands in for a GitOps tool are processes of their own; this one posts Bundles
and watches, as a person would, and reads CPU and memory of the programs from the operating system. All Pipelines have
three environments in one of two repositories. A run is one machine at one time: compare figures of one run. What more
Pipelines cost is measured by `hack/bench/fleet.py`.
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
from kardinal.kube import Client, load_connection
from kardinal.runtime.clock import SystemClock

WALKS = 12
"""Bundles sent one after the other."""
TOGETHER = 20
BASELINES = 30
"""Promotions of the script."""
SETTLE = 2.0
"""Seconds for what follows a Bundle that is Verified, such as Events."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one site."""

    what: str
    figure: str
    goal: str = ""


async def _one_after_the_other(cluster: Cluster, team: Team) -> tuple[list[Row], Requests]:
    """Measure the walks of one Pipeline while nothing else happens."""
    (name,) = await team.grow(1)
    await team.walk([name])
    await asyncio.sleep(SETTLE)
    before, programs = await cluster.requests(), cluster.programs
    total, own = programs.cpu(), programs.cpu(children=False)
    async with team.watched() as moments:
        began = time.perf_counter()
        walks = [await team.walk([name]) for _ in range(WALKS)]
        pace = WALKS * len(ENVIRONMENTS) / (time.perf_counter() - began) * 60
        await asyncio.sleep(SETTLE)
    promotions = WALKS * len(ENVIRONMENTS)
    total, own = programs.cpu() - total, programs.cpu(children=False) - own
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
    """Measure one Bundle through each of so many Pipelines at once."""
    names = await team.grow(pipelines)
    await asyncio.sleep(SETTLE)
    pace = pipelines * len(ENVIRONMENTS) / await team.walk(names) * 60
    await asyncio.sleep(SETTLE)
    return [Row(f"promotions a minute, {pipelines} Pipelines", f"{pace:.0f}", "1500")]


async def _script(site: Site, directory: Path) -> list[Row]:
    """Measure the script; its commits bring what no Bundle has, so nothing but the tool hears of them."""
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
    """Print where the writes of a promotion go."""
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
