"""Chromium for tests and pictures of the web page, which asks no other host for anything by itself."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

__all__ = ["run_chromium"]

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


@asynccontextmanager
async def run_chromium() -> AsyncIterator[Any]:
    """Run Chromium without any profile until the block ends. Raises ImportError without Playwright."""
    # Only the targets that need a browser install Playwright.
    from playwright.async_api import async_playwright  # noqa: PLC0415

    async with async_playwright() as started:
        # Chromium's sandbox does not start as root.
        sandbox = os.getuid() != 0
        browser = await started.chromium.launch(
            executable_path=find_chromium(), args=list(OPTIONS), chromium_sandbox=sandbox
        )
        yield browser
        await browser.close()
