"""Open the page in Chromium, and measure what a person would notice: the first rows, changes, scrolling and panning.

Waits are by the clock, and so include what other processes do on the machine. Work is processor time of the main
thread, from a trace.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from hack.bench.ui.fleet import PROBE, WIDE
from hack.bench.ui.trace import CATEGORIES, Work, work_of

__all__ = ["Opened", "Window", "new_window", "run_chromium"]

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--disable-background-networking", "--disable-component-update", "--disable-gpu", "--no-first-run")
FRAME = 1 / 60
DEADLINE = 60_000
ROWS = ".pipeline-row"
TILES = ".tile[aria-pressed]"
NODES = ".react-flow__node"

# Notes the times of the page, in milliseconds since the navigation, at which the first rows are in the document and at
# which the click on a tile is answered.
_OPENED = """
window.bench = {};
new MutationObserver(() => {
  const { bench } = window;
  if (bench.rows === undefined && document.querySelector(".pipeline-row")) bench.rows = performance.now();
  if (bench.answered === undefined && document.querySelector(".tile[aria-pressed=true]")) {
    bench.answered = performance.now();
  }
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["aria-pressed"] });
"""

# Notes the times of the machine's clock, in milliseconds, at which each probe is in the row of the probe.
_PROBES = """
([rows, name]) => {
  window.probes = [];
  let last = -1;
  const look = () => {
    const row = [...document.querySelectorAll(rows)].find((each) => each.querySelector(".title").textContent === name);
    const found = row && /probe (\\d+)\\./.exec(row.textContent);
    if (!found || Number(found[1]) === last) return;
    last = Number(found[1]);
    window.probes.push([last, Date.now()]);
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}
"""

_ANSWERED = """async () => {
  while (window.bench.answered === undefined) await new Promise(requestAnimationFrame);
  return window.bench;
}"""
"""Waits until the click on a tile was answered, and returns the times."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The milliseconds from the navigation until the first rows, and until a click on a tile was answered."""

    rows: float
    answered: float


class Window:
    """One window on a server of the page; `page` is Playwright's page."""

    def __init__(self, browser: Any, page: Any, url: str) -> None:
        self._browser = browser
        self._page = page
        self._url = url
        self._free = (0.0, 0.0)

    async def open_overview(self) -> Opened:
        """Open the overview, and click on a tile as soon as there are rows."""
        await self._page.add_init_script(_OPENED)
        await self._page.goto(f"{self._url}/ui/", wait_until="commit")
        await self._page.locator(ROWS).first.wait_for()
        await self._page.locator(TILES).last.click()
        # `wait_for_function` would be refused: it evaluates its text in the page, whose policy has no 'unsafe-eval'.
        async with asyncio.timeout(DEADLINE / 1000):
            found = await self._page.evaluate(_ANSWERED)
        await self._page.locator(TILES).last.click()
        return Opened(found["rows"], found["answered"])

    async def note_probes(self) -> None:
        """Note from now on when a probe is visible in the row of the probe."""
        await self._page.evaluate(_PROBES, [ROWS, PROBE[1]])

    async def probes(self) -> list[tuple[int, float]]:
        """Return the probes that were visible, each with the time of the machine's clock in seconds."""
        return [(number, at / 1000) for number, at in await self._page.evaluate("window.probes")]

    async def scroll_overview(self) -> None:
        """Scroll through some 140 rows and back, by a turn of the wheel in each frame."""
        await self._page.mouse.move(700, 500)
        for delta in (*[100] * 120, *[-100] * 120):
            await self._page.mouse.wheel(0, delta)
            await self._page.evaluate("new Promise(requestAnimationFrame)")

    async def open_dag(self) -> None:
        """Open the DAG of 200 nodes, and wait for its nodes."""
        await self._page.goto(f"{self._url}/ui/pipelines/{WIDE[0]}/{WIDE[1]}")
        await self._page.locator(NODES).first.wait_for()
        await asyncio.sleep(1)
        self._free = await self._free_place()

    async def pan_dag(self) -> None:
        """Drag the DAG to the left and back, a little in each frame."""
        x, y = self._free
        await self._page.mouse.move(x, y)
        await self._page.mouse.down()
        for step in (*range(0, 600, 10), *range(600, 0, -10)):
            await self._page.mouse.move(x - step, y - step / 4)
            await asyncio.sleep(FRAME)
        await self._page.mouse.up()

    async def zoom_dag(self) -> None:
        """Zoom the DAG in and out by a wheel, a little in each frame."""
        x, y = self._free
        await self._page.mouse.move(x, y)
        await self._page.keyboard.down("Control")
        for delta in (*[-8] * 60, *[8] * 60):
            await self._page.mouse.wheel(0, delta)
            await asyncio.sleep(FRAME)
        await self._page.keyboard.up("Control")

    async def traced(self, doing: Callable[[], Awaitable[object]]) -> Work:
        """Return the work of the main thread while something is done."""
        await self._browser.start_tracing(page=self._page, categories=list(CATEGORIES))
        try:
            await doing()
        finally:
            trace = await self._browser.stop_tracing()
        return work_of(orjson.loads(trace)["traceEvents"])

    async def _free_place(self) -> tuple[float, float]:
        """Return a place in the middle of the DAG where no node is."""
        place: Sequence[float] | None = await self._page.evaluate(
            """() => {
              const { left, top, width, height } = document.querySelector(".react-flow").getBoundingClientRect();
              for (let y = top + height / 2; y < top + height; y += 3)
                for (let x = left + width * 0.7; x < left + width; x += 3)
                  if (document.elementFromPoint(x, y)?.classList.contains("react-flow__pane")) return [x, y];
              return null;
            }"""
        )
        if place is None:
            raise LookupError("the DAG covers the whole window")
        return place[0], place[1]


@asynccontextmanager
async def run_chromium() -> AsyncIterator[Any]:
    """Run a Chromium without any profile: that on PATH, or else Playwright's own."""
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    # `make .venv/.browser` installs it; what is installed without has no types of it.
    playwright: Any = importlib.import_module("playwright.async_api")
    async with playwright.async_playwright() as started:
        # Chromium's sandbox does not start as root.
        browser = await started.chromium.launch(
            executable_path=found, args=list(OPTIONS), chromium_sandbox=os.getuid() != 0
        )
        yield browser
        await browser.close()


@asynccontextmanager
async def new_window(browser: Any, url: str) -> AsyncIterator[Window]:
    """Yield a window of 1440 by 800 pixels with an empty cache."""
    context = await browser.new_context(
        viewport={"width": 1440, "height": 800}, extra_http_headers={"X-Viewer": "browser"}
    )
    page = await context.new_page()
    page.set_default_timeout(DEADLINE)
    yield Window(browser, page, url)
    await context.close()
