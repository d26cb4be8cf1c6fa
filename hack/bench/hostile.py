"""Measure the cost of hostile peers: the latency of `/healthz`, the memory, and the time of an honest promotion.

    python -m hack.bench.hostile [--seed 23] [--seconds 6] [--place NAME] [--part]

A place is a part of kardinal that reads foreign bytes, such as the webhook. Each place is measured with a newly started
`kardinal-controller` and its agent, as installed, and a hostile peer with one behaviour after the other
(`tests/support/hostile`). Meanwhile honest Bundles are promoted through three environments. The error that the program
reports is printed as well. Commands are measured separately.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from kardinal.clock import SystemClock
from tests.support.hostile.beside import Beside, running
from tests.support.hostile.commands import HONEST, commands, run_command
from tests.support.hostile.measuring import Cost, measured
from tests.support.hostile.places import PLACES, Place
from tests.support.hostile.server import TRAP

MIB = 1 << 20
SAID = 110
"""The number of characters of the reported error that are printed."""
HEAD = (
    "place",
    "behaviours",
    "slowest `/healthz`",
    "beside nothing",
    "answered",
    "memory beyond that of before",
    "memory of children",
    "honest Bundles, the slowest",
)


@dataclass(slots=True)
class Row:
    """The cost of one behaviour: `honest` has the times of honest promotions in seconds, `said` the reported error."""

    behaviour: str
    cost: Cost
    honest: list[float]
    said: str


async def _measure_nothing(beside: Beside, *, seconds: float) -> Row:
    """Measure honest promotions without a hostile peer, which tells how busy the machine is."""
    with measured(beside.process.pid, beside.probes) as cost:
        walks = await _promote_for(beside, seconds)
    return Row("(nothing hostile)", cost, walks, "")


async def _promote_for(beside: Beside, seconds: float) -> list[float]:
    walks: list[float] = []
    until = time.perf_counter() + seconds
    while not walks or time.perf_counter() < until:
        walks.append(await beside.promote())
        await asyncio.sleep(0.5)
    return walks


async def _measure_one(beside: Beside, place: Place, behaviour: str, *, seed: int, seconds: float) -> Row:
    async with place.begin(beside, behaviour, seed) as said:
        with measured(beside.process.pid, beside.probes) as cost:
            walks = await _promote_for(beside, seconds)
        told = await said()
    return Row(behaviour, cost, walks, told)


def _print(row: Row) -> None:
    cost = row.cost
    said = " ".join(row.said.split())[:SAID]
    failed = f" {cost.failed} of {cost.asked} FAILED" if cost.failed else ""
    memory, children = (f"{size / MIB:>7.0f} MiB" for size in (cost.memory, cost.children))
    figures = f"{cost.latency * 1000:>7.0f} ms{memory}{children}{max(row.honest):>7.1f} s"
    print(f"    {row.behaviour:<32}{figures}  {said}{failed}", flush=True)


async def _measure_place(place: Place, chosen: argparse.Namespace) -> tuple[Row, list[Row]]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="kardinal-hostile-") as name:
        async with running(Path(name) / "run", seed=chosen.seed) as beside:
            print(f"{place.name}", flush=True)
            _print(nothing := await _measure_nothing(beside, seconds=chosen.seconds))
            for behaviour in place.part if chosen.part else place.behaviours:
                rows.append(await _measure_one(beside, place, behaviour, seed=chosen.seed, seconds=chosen.seconds))
                _print(rows[-1])
            if trapped := (await beside.requests()).get(TRAP):
                print(f"    {trapped} requests arrived where a redirect led inside")
    return nothing, rows


def _measure_commands() -> None:
    with tempfile.TemporaryDirectory(prefix="kardinal-hostile-") as name:
        print("commands", flush=True)
        base = run_command(Path(name), HONEST)
        for case in commands():
            done = run_command(Path(name), case)
            said = " ".join(done.said.split())[:SAID]
            print(f"    {case.name:<32}{done.seconds:>7.1f} s {(done.memory - base.memory) / MIB:>7.0f} MiB  {said}")


def _summary(place: Place, nothing: Row, rows: list[Row]) -> str:
    """Return a row of the table in `docs/security.md`."""
    latency = max(rows, key=lambda row: row.cost.latency)
    memory = max(rows, key=lambda row: row.cost.memory)
    children = max(rows, key=lambda row: row.cost.children)
    walks = [walk for row in rows for walk in row.honest]
    failed = sum(row.cost.failed for row in rows)
    asked = sum(row.cost.asked for row in rows)
    cells = (
        place.name,
        str(len(rows)),
        f"{latency.cost.latency * 1000:.0f} ms ({latency.behaviour})",
        f"{nothing.cost.latency * 1000:.0f} ms",
        f"{asked - failed:,} of {asked:,}",
        f"{memory.cost.memory / MIB:.0f} MiB ({memory.behaviour})",
        f"{children.cost.children / MIB:.0f} MiB ({children.behaviour})",
        f"{len(walks)}, {max(walks):.1f} s",
    )
    return f"| {' | '.join(cells)} |"


async def _measure(chosen: argparse.Namespace) -> None:
    print(
        f"hostile others on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end=""
    )
    print(f"{SystemClock().now():%Y-%m-%d}, seed {chosen.seed}, load {os.getloadavg()[0]:.1f}\n")
    print(f"    {'':<32}{'/healthz':>10}{'memory':>11}{'children':>11}{'honest':>9}  what the program said")
    chosen_places = [place for place in PLACES if chosen.place in (None, place.name)]
    lines = [_summary(place, *await _measure_place(place, chosen)) for place in chosen_places]
    if chosen.place in (None, "commands"):
        await asyncio.to_thread(_measure_commands)
    print(f"\n| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    print("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what hostile others cost.")
    parser.add_argument("--seed", type=int, default=23)
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each behaviour goes on")
    parser.add_argument("--place", choices=[*(place.name for place in PLACES), "commands"], help="this place alone")
    parser.add_argument("--part", action="store_true", help="the behaviours of the test alone, which cost most")
    asyncio.run(_measure(parser.parse_args()))


if __name__ == "__main__":
    main()
