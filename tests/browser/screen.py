"""A window of a browser, and what a test asks of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

__all__ = ["NARROW", "WIDE", "Screen"]

SECONDS = 60.0
"""Seconds of real time in which a text has to appear."""

WIDE = {"width": 1440, "height": 800}
NARROW = {"width": 360, "height": 740}

AXE = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
"""The checker of accessibility, which `make ui` installs."""

_BEYOND_THE_EDGE = """
() => {
  const width = document.documentElement.clientWidth;
  const cut = (element) => element && (getComputedStyle(element).overflowX !== "visible" || cut(element.parentElement));
  const beyond = [...document.body.querySelectorAll("*")].filter(
    (element) => element.getBoundingClientRect().right > width + 1 && !cut(element.parentElement));
  const whole = document.documentElement.scrollWidth > width ? ["the whole page scrolls"] : [];
  return [...whole, ...beyond.slice(0, 5).map((element) => element.outerHTML.slice(0, 200))];
}
"""


class Screen:
    """One window; `page` is Playwright's page."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors: list[str] = []
        self.expected: list[str] = []
        """Parts of errors that the test provokes, such as a status of HTTP."""
        self._origin = ""
        page.set_default_timeout(SECONDS * 1000)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(f"{error.message}\n{error.stack}"))
        page.on("request", self._asked)

    @classmethod
    async def open(cls, browser: Any) -> Screen:
        """Open an empty window with a profile of its own; every error is noted from here on."""
        context = await browser.new_context(viewport=WIDE, locale="en-GB", reduced_motion="reduce")
        return cls(await context.new_page())

    async def go(self, link: str) -> None:
        """Follow a link, as a person who types it."""
        self._origin = urlsplit(link).netloc
        await self.page.goto(link)

    async def visit(self, path: str) -> None:
        """Type an address of the page that is open, such as `/bundles`."""
        await self.page.goto(f"http://{self._origin}/ui{path}")

    async def sees(self, text: str) -> None:
        """Wait until a text is visible."""
        await self.page.get_by_text(text).filter(visible=True).first.wait_for()

    def node(self, name: str) -> Any:
        """Return the environment or gate of a name in the DAG."""
        return self.page.locator(".react-flow__node").filter(has=self.page.get_by_text(name, exact=True))

    def dialog(self) -> Any:
        """Return the dialog that is open."""
        return self.page.get_by_role("dialog")

    async def violations(self) -> list[str]:
        """Return what axe finds in what is shown, in light and in dark."""
        found = []
        for scheme in ("light", "dark"):
            await self.page.emulate_media(color_scheme=scheme)
            await self.page.evaluate(AXE.read_text())
            for each in (await self.page.evaluate("axe.run(document, {resultTypes: ['violations']})"))["violations"]:
                elements = [node["html"][:200] for node in each["nodes"][:3]]
                found.append(f"{self.page.url} in {scheme}: {each['id']}: {each['help']}: {elements}")
        return found

    async def overflow(self) -> list[str]:
        """Return the elements that reach beyond the right edge of the window, but for what scrolls by itself."""
        return [f"{self.page.url}: {element}" for element in await self.page.evaluate(_BEYOND_THE_EDGE)]

    async def keep_picture(self, path: Path) -> None:
        """Save a picture of the window beside the files of the test."""
        await self.page.screenshot(path=path)

    def check_errors(self) -> None:
        """Fail if there was an error that the test did not expect; the next test begins without any."""
        unexpected = [error for error in self.errors if not any(part in error for part in self.expected)]
        self.errors.clear()
        self.expected.clear()
        if unexpected:
            pytest.fail("the page told its console: " + "\n".join(unexpected), pytrace=False)

    async def close(self) -> None:
        """Close the window with its profile."""
        await self.page.context.close()

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url')})")

    def _asked(self, request: Any) -> None:
        target = urlsplit(request.url)
        if target.scheme in ("http", "https") and target.netloc != self._origin:
            self.errors.append(f"the page asked another host: {request.url}")
