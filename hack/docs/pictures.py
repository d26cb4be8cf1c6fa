"""Take pictures of every page of the web page, light and dark, wide and narrow: `make pictures`.

All go to `build/pictures/`, named `LOOK-WIDTH-PAGE.png`, such as `dark-1280-pipeline.png`; those that the guide and
the README show go to `docs/pictures/` as well. What they show is real: see `hack.docs.picture_pipelines`.

    python -m hack.docs.pictures              # all
    python -m hack.docs.pictures --keep       # and leave the page running until Enter, to look for oneself
    python -m hack.docs.pictures pipeline     # the pages whose names begin so
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hack.browser import run_chromium
from hack.docs.picture_pipelines import Team, run_team
from kardinal.runtime.logging import configure

ROOT = Path(__file__).parents[2]
ALL = ROOT / "build" / "pictures"
SHOWN = ROOT / "docs" / "pictures"
CHOSEN = {
    "light-1280-overview": "overview.png",
    "light-1280-pipeline": "pipeline.png",
    "dark-1280-pipeline": "pipeline-dark.png",
    "light-1280-pipeline-gate": "gate.png",
}
"""The pictures in the documentation, by the name among all."""
LOOKS = ("light", "dark")
WIDTHS = {1280: 800, 360: 740}
"""Width and height of the windows in pixels."""
SETTLE_MS = 700
"""Milliseconds that a change is tinted for, and a little more."""
SEARCH = "pipelines/shop/search"

Page = Any
"""Playwright's page."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One page to take: its address below the page's own, what it waits for, and what a person does before."""

    name: str
    path: str
    waits_for: str
    """The CSS selector of what is there once the page is complete."""
    act: Callable[[Page], Awaitable[None]] | None = None


def _click(button: str) -> Callable[[Page], Awaitable[None]]:
    """Return what clicks on a button, and waits for the dialog or menu that it opens."""

    async def act(page: Page) -> None:
        await page.get_by_role("button", name=button).first.click()
        await page.locator("[role=dialog], [role=menu]").first.wait_for()

    return act


async def _press_question_mark(page: Page) -> None:
    await page.keyboard.press("?")
    await page.get_by_role("dialog").wait_for()


async def _read_events(page: Page) -> None:
    await page.get_by_role("button", name="Read", exact=True).click()
    await page.locator(".past.small").first.wait_for()


EMPTY = (
    Shot("empty-overview", "", ".empty"),
    Shot("empty-bundles", "bundles", "main"),
    Shot("empty-graphs", "graphs", "main"),
)
UNUSED = (Shot("unused-pipeline", SEARCH, ".environment-box"),)
"""A Pipeline without a Bundle."""


def _shots(team: Team) -> tuple[Shot, ...]:
    """Return every page of the Pipelines that are under way."""
    held = team.bundle("0.9.4")
    older = team.bundle("0.9.3")
    of = f"?bundle={held}"
    return (
        Shot("overview", "", ".card"),
        Shot("overview-filtered", "?need=held", ".card"),
        Shot("overview-nothing", "?q=nowhere", ".empty"),
        Shot("overview-matrix", "?view=matrix", ".matrix-row .state"),
        Shot("overview-menu", "", ".card", _click("all namespaces")),
        Shot("keys", "", ".card", _press_question_mark),
        Shot("pipeline", f"{SEARCH}{of}", ".environment-box"),
        Shot("pipeline-gate", f"{SEARCH}/gates/prod/platform-policies/business-hours{of}", ".drawer-body .values"),
        Shot("pipeline-gate-open", f"{SEARCH}/gates/staging/shop/soak{of}", ".drawer-body .values"),
        Shot("pipeline-environment", f"{SEARCH}/environments/prod{of}", ".drawer-body .command"),
        Shot("pipeline-moving", "pipelines/shop/catalogue/environments/staging", ".drawer-body .command"),
        Shot("pipeline-events", f"{SEARCH}/environments/load-test{of}", ".drawer-body .command", _read_events),
        Shot("pipeline-compare", f"{SEARCH}{of}&compare={older}", ".comparison"),
        Shot("pipeline-failed", "pipelines/shop/checkout/environments/staging", ".drawer-body .command"),
        Shot("pipeline-review", "pipelines/shop/payments/environments/prod", ".drawer-body .command"),
        Shot("pipeline-paused", "pipelines/shop/cart", ".environment-box"),
        Shot("pipeline-unserved", "pipelines/platform/mailer/environments/us", ".drawer-body .command"),
        Shot("pipeline-rest", "pipelines/finance/ledger", ".environment-box"),
        Shot("dialog-promote", f"{SEARCH}{of}", ".environment-box", _click("Promote …")),
        Shot("dialog-pause", f"{SEARCH}{of}", ".environment-box", _click("Pause …")),
        Shot("dialog-merge", "pipelines/shop/payments/environments/prod", ".drawer-body", _click("Merge …")),
        Shot("dialog-roll-back", f"{SEARCH}/environments/staging{of}", ".drawer-body", _click("Roll back …")),
        Shot("dialog-retry", "pipelines/shop/checkout/environments/staging", ".drawer-body", _click("Retry …")),
        Shot("bundles", "bundles", "table"),
        Shot("bundle", f"bundles/shop/{held}", ".evidence, .columns"),
        Shot("bundle-old", f"bundles/shop/{older}", ".evidence, .columns"),
        Shot("graphs", "graphs", "table"),
        Shot("graph", f"graphs/shop/{held}", "main h1"),
        Shot("yaml", "yaml/pipeline/shop/search", "pre"),
        Shot("nowhere", "nowhere", ".empty"),
        Shot("missing", "pipelines/shop/nothing", ".notice"),
    )


class Photographer:
    """A window of Chromium that saves what it shows."""

    def __init__(self, page: Page, wanted: str) -> None:
        self._page = page
        self._wanted = wanted
        self._base = ""

    async def open(self, link: str) -> None:
        """Follow the link of the page, with its one-time code."""
        self._base = f"{urlsplit(link).scheme}://{urlsplit(link).netloc}/ui/"
        await self._page.goto(link)
        await self._page.locator("main").wait_for()

    async def take(self, shots: tuple[Shot, ...]) -> None:
        """Take each of these pages in each look and width."""
        for shot in shots:
            if shot.name.startswith(self._wanted):
                for width, height in WIDTHS.items():
                    await self._page.set_viewport_size({"width": width, "height": height})
                    for look in LOOKS:
                        await self._page.emulate_media(color_scheme=look)
                        await self._take(shot, f"{look}-{width}-{shot.name}")

    async def _take(self, shot: Shot, name: str) -> None:
        await self._page.goto(self._base + shot.path)
        await self._page.locator(shot.waits_for).first.wait_for()
        if shot.act:
            await shot.act(self._page)
        await self._page.mouse.move(0, 0)
        await self._page.wait_for_timeout(SETTLE_MS)
        await self._page.screenshot(path=ALL / f"{name}.png", full_page=True)
        if name in CHOSEN:
            await self._page.screenshot(path=SHOWN / CHOSEN[name])
        print(name, flush=True)


async def take_pictures(wanted: str, *, keep: bool) -> None:
    """Run the Pipelines, and take the pages whose names begin with `wanted`."""
    ALL.mkdir(parents=True, exist_ok=True)
    SHOWN.mkdir(parents=True, exist_ok=True)
    directory = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="kardinal-"))
    try:
        async with run_team(directory) as team, run_chromium() as chromium:
            context = await chromium.new_context(locale="en-GB", timezone_id="UTC", reduced_motion="reduce")
            photographer = Photographer(await context.new_page(), wanted)
            await photographer.open(team.stack.page.link())
            await photographer.take(EMPTY)
            await team.create_pipelines()
            await photographer.take(UNUSED)
            await team.promote_quickly()
            async with team.promote_slowly():
                await photographer.take(_shots(team))
                if keep:
                    await asyncio.to_thread(input, f"{team.stack.page.link()}\nPress Enter to stop.\n")
    finally:
        await asyncio.to_thread(shutil.rmtree, directory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("page", nargs="?", default="", help="pages whose names begin so; default: all")
    parser.add_argument("--keep", action="store_true", help="leave the page running until Enter")
    arguments = parser.parse_args()
    configure(level="error")
    asyncio.run(take_pictures(arguments.page, keep=arguments.keep))


if __name__ == "__main__":
    main()
