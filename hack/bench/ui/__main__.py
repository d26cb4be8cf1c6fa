"""Measure the page against its goals: in a browser, beside 50 viewers, and beside promotions.

    make .venv/.browser ui && .venv/bin/python -m hack.bench.ui [--before DIRECTORY] [--only browser]

Three parts, some minutes in all:

browser     how fast the page opens, and what scrolling 1,000 rows and moving a DAG of 200 nodes costs
viewers     what 50 viewers cost while Pipelines promote, and when a change is visible
throughput  how many promotions the whole of kardinal makes without and beside 50 viewers

In the first two, the process under test has the informers, the feed and the server of the page. Changes are put into
its informers, as a watch would; each promotion is seven writes. `--before` is the directory of another built page,
which is measured in turns with this one. Work is processor time, so that other processes on the machine hardly count;
waits are by the clock. Each figure is the least of its rounds, the median where the text says so.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from hack.bench.subjects import Subject, run_module
from hack.bench.ui.browser import Opened, Window, new_window, run_chromium
from hack.bench.ui.fleet import ENVIRONMENTS
from hack.bench.ui.throughput import measure_throughput
from hack.bench.ui.trace import Work
from hack.bench.ui.viewers import Viewer, connected
from kardinal.clock import SystemClock
from kardinal_controller.ui.assets import BUILT

ROUNDS = 3
SECONDS = 20
"""The time of promotions in each round of viewers."""
PROBES = 5
"""After so many promotions one write is awaited in the browser."""
CHANGES = 6
PART_PIPELINES = 40
"""The Pipelines of the throughput, each with one Bundle through three environments in each round."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. Without a goal, it is met by any figure."""

    what: str
    figure: float
    unit: str
    goal: float | None = None
    note: str = ""

    def __str__(self) -> str:
        goal = "" if self.goal is None else f"≤ {self.goal:,.4g} {self.unit}"
        met = "" if self.goal is None else "met" if self.figure <= self.goal else "**missed**"
        note = f" ({self.note})" if self.note else ""
        figure = f"{self.figure:,.0f}" if self.figure >= 100 else f"{self.figure:.1f}"
        return f"| {self.what} | {goal} | {figure} {self.unit}{note} | {met} |"


def _print(title: str, figures: Iterable[Figure]) -> None:
    print(f"\n{title}, load {os.getloadavg()[0]:.1f}\n\n| what | goal | measured | |\n|---|---|---|---|")
    for figure in figures:
        print(figure, flush=True)


async def _command(subject: Subject, **command: Any) -> tuple[float, Json, list[Json]]:
    """Give a command; return the processor time that it took, the stalls of the event loop, and what was written."""
    process = subject.process
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the process under test has no pipes")
    before = subject.cpu()
    process.stdin.write(orjson.dumps(command) + b"\n")
    written: list[Json] = []
    while True:
        line = orjson.loads(await process.stdout.readline())
        if "done" in line:
            return subject.cpu() - before, line["stall"], written
        written.append(line)


# The browser.


@dataclass(slots=True)
class _Page:
    """A built page on a server of its own, and what was measured of it in each round."""

    subject: Subject
    rows: list[float]
    answered: list[float]
    work: dict[str, list[Work]]

    async def measure(self, browser: Any) -> None:
        async with new_window(browser, self.subject.answer["url"]) as window:
            opened: list[Opened] = []
            self._note("open", await window.traced(lambda: _open(window, opened)))
            self.rows.append(opened[0].rows)
            self.answered.append(opened[0].answered)
            self._note("scroll", await window.traced(window.scroll_overview))
            await window.open_dag()
            self._note("pan", await window.traced(window.pan_dag))
            self._note("zoom", await window.traced(window.zoom_dag))
            self._note("change", await window.traced(lambda: _command(self.subject, do="change", times=CHANGES)))
            self._note("draw", await window.traced(window.open_dag))

    def _note(self, what: str, work: Work) -> None:
        self.work.setdefault(what, []).append(work)

    def figures(self) -> Iterable[Figure]:
        own = min(each.total for each in self.work["open"])
        yield Figure(
            "overview of 1,000 interactive: from navigation to the answer to a click",
            min(self.answered),
            "ms",
            1500,
            f"first rows {min(self.rows):,.0f} ms; main thread {own:,.0f} ms in all",
        )
        for what, title in (
            ("scroll", "scrolling the overview"),
            ("pan", "panning the DAG"),
            ("zoom", "zooming the DAG"),
        ):
            works = self.work[what]
            middle = statistics.median(works[0].frames)
            yield Figure(
                f"{title}: main thread for a frame, p95", min(each.p95 for each in works), "ms", 8, f"p50 {middle:.1f}"
            )
            yield Figure(f"{title}: longest task", min(each.longest for each in works), "ms", 50)
        yield Figure("one node of the DAG changes its state: longest task", self._longest("change"), "ms", 50)
        yield Figure("first drawing of the DAG: longest task", self._longest("draw"), "ms")

    def _longest(self, what: str) -> float:
        return min(each.longest for each in self.work[what])


async def _open(window: Window, opened: list[Opened]) -> None:
    opened.append(await window.open_overview())


async def _measure_browser(pipelines: int, before: Path | None) -> None:
    async with AsyncExitStack() as stack:
        pages = {}
        for name, built in (("before", before), ("now", BUILT)):
            if built is not None:
                arguments = ("fleet", str(pipelines), "--built", str(built))
                subject = await stack.enter_async_context(run_module("hack.bench.ui.serve", *arguments))
                pages[name] = _Page(subject, [], [], {})
        browser = await stack.enter_async_context(run_chromium())
        for _ in range(ROUNDS):
            for page in pages.values():
                await page.measure(browser)
        for name, page in pages.items():
            _print(f"in the browser, {name}", page.figures())


# The viewers.


async def _measure_viewers(pipelines: int, viewers: int, rate: int) -> None:
    promote = {"do": "promote", "rate": rate, "seconds": SECONDS, "probes": PROBES}
    alone = []
    beside = []
    first = []
    patches = []
    memory = []
    arrived = []
    visible = []
    busy = []
    late = []
    scrolls = []
    async with run_module("hack.bench.ui.serve", "fleet", str(pipelines)) as subject, run_chromium() as browser:
        url = subject.answer["url"]
        for _ in range(ROUNDS):
            cpu, _, _ = await _command(subject, **promote)
            alone.append(cpu / SECONDS)
            resident = subject.memory()
            async with connected(url, viewers) as people:
                memory.append((subject.memory() - resident) * 1024 / viewers)
                sizes = [each.size for each in people]
                first.append(statistics.median(sizes) / 1000)
                cpu, _, written = await _command(subject, **promote)
                beside.append(cpu / SECONDS)
                more = [each.size - size for each, size in zip(people, sizes, strict=True)]
                patches.append(statistics.median(more) / 1000 * 60 / SECONDS)
                arrived.append(_p95(_arrivals(people[0], written)))
            # All come back at once.
            waiting = asyncio.create_task(_command(subject, do="wait", seconds=2))
            async with connected(url, viewers):
                _, stall, _ = await waiting
                busy.append(stall["busy"] * 1000)
                late.append(stall["late"] * 1000)
            async with new_window(browser, url) as window:
                await window.open_overview()
                await window.note_probes()
                _, _, written = await _command(subject, **promote)
                visible.append(_p95(_visible(await window.probes(), written)))
                promoting = asyncio.create_task(_command(subject, **promote))
                scrolls.append(await window.traced(window.scroll_overview))
                await promoting
    size = min(first) + min(patches)
    _print(
        f"{viewers} viewers beside {rate:,} promotions a minute",
        (
            Figure("write to the informers until it is visible, p95", min(visible) * 1000, "ms", 200),
            Figure("write to the informers until its patch is at a viewer, p95", min(arrived) * 1000, "ms"),
            Figure(
                "processor for the viewers",
                (min(beside) - min(alone)) * 100,
                "% of a core",
                25,
                f"{min(alone):.1%} without them",
            ),
            Figure(
                "bytes of a viewer, first picture and a minute", size, "KB", 150, f"first picture {min(first):.0f} KB"
            ),
            Figure("memory of a viewer", min(memory), "KiB"),
            Figure(
                "all reconnect at once: the event loop runs nothing else, at most",
                min(busy),
                "ms",
                50,
                f"processor time; by the clock {min(late):.0f} ms",
            ),
            Figure(
                "scrolling the overview beside the promotions: main thread for a frame, p95",
                min(each.p95 for each in scrolls),
                "ms",
                8,
            ),
            Figure(
                "scrolling the overview beside the promotions: longest task",
                min(each.longest for each in scrolls),
                "ms",
                50,
            ),
        ),
    )


def _arrivals(viewer: Viewer, written: Sequence[Json]) -> list[float]:
    """Return the seconds from each write to the next patch of its row."""
    found = []
    for write in written:
        later = [moment for moment in viewer.patches.get(write.get("row", ""), ()) if moment >= write["at"]]
        found += later[:1] and [later[0] - write["at"]]
    return found


def _visible(seen: Sequence[tuple[int, float]], written: Sequence[Json]) -> list[float]:
    """Return the seconds from each probe until it, or a later one, was in the document."""
    found = []
    for write in written:
        if "probe" in write:
            later = [at for number, at in seen if number >= write["probe"] and at >= write["at"] - 0.001]
            found += later[:1] and [later[0] - write["at"]]
    return found


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


# The throughput.


async def _measure_throughput(viewers: int) -> None:
    alone, beside = await measure_throughput(viewers=viewers, pipelines=PART_PIPELINES, rounds=ROUNDS)
    _print(
        f"promotions by the whole of kardinal beside {viewers} viewers, medians",
        (
            Figure(
                "processor of controller, agent and page for a promotion: more than without viewers",
                (beside.cpu / alone.cpu - 1) * 100,
                "%",
                5,
                f"{beside.cpu * 1000:.1f} ms, without viewers {alone.cpu * 1000:.1f} ms",
            ),
            Figure(
                "promotions a minute: fewer than without viewers",
                (1 - beside.a_minute / alone.a_minute) * 100,
                "%",
                5,
                f"{beside.a_minute:,.0f}, without viewers {alone.a_minute:,.0f}; viewers are on the same cores",
            ),
        ),
    )


async def _measure(*, pipelines: int, viewers: int, rate: int, before: Path | None, only: str | None) -> None:
    print(f"the page on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(f"{SystemClock().now():%Y-%m-%d}: {pipelines:,} Pipelines of {len(ENVIRONMENTS)} environments, ", end="")
    print(f"{2 * pipelines:,} Bundles", flush=True)
    if only in (None, "browser"):
        await _measure_browser(pipelines, before)
    if only in (None, "viewers"):
        await _measure_viewers(pipelines, viewers, rate)
    if only in (None, "throughput"):
        await _measure_throughput(viewers)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the page against its goals.")
    parser.add_argument("--pipelines", type=int, default=1000)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--rate", type=int, default=1000, help="promotions a minute")
    parser.add_argument("--before", type=Path, help="the directory of another built page, to compare with")
    parser.add_argument("--only", choices=("browser", "viewers", "throughput"), help="one part")
    options = vars(parser.parse_args())
    if not (BUILT / "index.html").is_file():
        parser.error("the page is not built: make ui")
    asyncio.run(_measure(**options))


if __name__ == "__main__":
    main()
