"""The page in a real Chromium, against real programs: `make test-ui`.

Nothing of the API is imitated: `kardinal local up` serves the page, a person's commands change what it shows. A test
fails if the page writes an error to its console, or asks another host for anything.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.screen import Screen
from tests.resilience.processes import Local, Shell, shell

__all__ = ["shell"]

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
"""The names under which distributions have Chromium on PATH."""

OPTIONS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)
"""Options without which Chromium talks to other hosts by itself."""


def find_chromium() -> str | None:
    """Return the Chromium on PATH; None leaves it to Playwright, which has its own after `playwright install`."""
    return next((found for name in CHROMIUM if (found := shutil.which(name))), None)


@pytest.fixture
async def chromium() -> AsyncIterator[Any]:
    """Yield a running Chromium without any profile."""
    playwright = pytest.importorskip("playwright.async_api", reason="needs Playwright: make test-ui")
    async with playwright.async_playwright() as started:
        # Chromium's sandbox does not start as root.
        sandbox = os.getuid() != 0
        browser = await started.chromium.launch(
            executable_path=find_chromium(), args=list(OPTIONS), chromium_sandbox=sandbox
        )
        yield browser
        await browser.close()


@pytest.fixture
async def screen(chromium: Any, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Screen]:
    """Yield a window of 1440 by 800 pixels; whatever its console calls an error fails the test in the end."""
    window = Screen(await chromium.new_context(viewport={"width": 1440, "height": 800}, locale="en-GB"))
    await window.open()
    yield window
    await window.keep_picture(tmp_path / f"{request.node.name}.png")
    await window.close()


@pytest.fixture
async def local(shell: Shell, tmp_path: Path) -> Local:
    """Return a running `kardinal local up`, with the simulator as its cluster."""
    started = Local(shell, tmp_path / "local", "--simulate")
    await started.up()
    return started
