"""A window of a browser, and what a test asks of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

__all__ = ["Screen"]

SECONDS = 20.0
"""Seconds of real time in which a text has to appear."""

AXE = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
"""The checker of accessibility, which `make ui` installs."""


class Screen:
    """One window; `page` is Playwright's page."""

    page: Any

    def __init__(self, context: Any) -> None:
        self.context = context
        self.errors: list[str] = []
        self.expected: list[str] = []
        """Parts of errors that the test provokes, such as a status of HTTP."""

    async def open(self) -> None:
        """Open an empty window, and note every error from here on."""
        self.page = await self.context.new_page()
        self.page.set_default_timeout(SECONDS * 1000)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(f"{error.message}\n{error.stack}"))
        self.page.on("request", self._asked)

    async def go(self, link: str) -> None:
        """Follow a link, as a person who types it."""
        self._origin = urlsplit(link).netloc
        await self.page.goto(link)

    async def sees(self, text: str) -> None:
        """Wait until a text is visible."""
        await self.page.get_by_text(text).first.wait_for(state="visible")

    async def check_accessibility(self) -> None:
        """Fail if axe finds a violation of WCAG A or AA on what is shown."""
        await self.page.evaluate(AXE.read_text())
        rules = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}
        found = (await self.page.evaluate("rules => axe.run(document, rules)", rules))["violations"]
        told = [f"{each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}" for each in found]
        assert told == []

    async def keep_picture(self, path: Path) -> None:
        """Save a picture of the window beside the files of the test."""
        await self.page.screenshot(path=path)

    async def close(self) -> None:
        """Close the window. Fails if there was an error that the test did not expect."""
        await self.context.close()
        unexpected = [error for error in self.errors if not any(part in error for part in self.expected)]
        if unexpected:
            pytest.fail("the page told its console: " + "\n".join(unexpected), pytrace=False)

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location.get('url')})")

    def _asked(self, request: Any) -> None:
        target = urlsplit(request.url)
        if target.scheme in ("http", "https") and target.netloc != self._origin:
            self.errors.append(f"the page asked another host: {request.url}")
