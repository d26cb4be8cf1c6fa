"""The page in a real Chromium, against real programs: `make test-ui`.

Nothing of the API is imitated: `kardinal local up` or a controller serves the page, a person's commands change what it
shows. A test fails if the page writes an error to its console, or asks another host for anything.

The stories of a module share one plane, one Chromium and one window, on one event loop: a module that uses them is
marked `asyncio(loop_scope="module")`, and `make test-ui` gives each module to one worker.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hack.browser import run_chromium
from tests.browser.sample import link_of
from tests.browser.screen import Screen
from tests.resilience.processes import Local, Shell
from tests.support.leaks import Possessions, left_behind


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long_story: takes too long for every change; run by `make test-ui-all`")


@asynccontextmanager
async def start_chromium() -> AsyncIterator[Any]:
    """Run a Chromium without any profile."""
    pytest.importorskip("playwright.async_api", reason="needs Playwright: make test-ui")
    async with run_chromium() as browser:
        yield browser


@pytest.fixture(scope="module", autouse=True)
def process_leaks(private_temporary_directory: Path) -> Iterator[None]:
    """Fail the module that leaves something behind, instead of each test: its stories share programs and threads."""
    before = Possessions.now()
    yield
    if leaked := left_behind(before):
        pytest.fail("the module left behind: " + "; ".join(leaked), pytrace=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Any]:
    """Yield the Chromium of the module."""
    async with start_chromium() as browser:
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shell(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shell]:
    """Yield a shell whose programs are ended with the module."""
    shell = Shell(tmp_path_factory.mktemp("shell"))
    yield shell
    await shell.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def local(shell: Shell) -> Local:
    """Return a running `kardinal local up`, with the simulator as its cluster."""
    started = Local(shell, shell.home / "local", "--simulate")
    await started.up()
    return started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def window(chromium: Any, local: Local) -> AsyncIterator[Screen]:
    """Yield the window of the module, in which the link of `local` is open."""
    window = await Screen.open(chromium)
    await window.go(await link_of(local))
    yield window
    await window.close()


@pytest_asyncio.fixture(loop_scope="module")
async def screen(window: Screen, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Screen]:
    """Yield that window; what its console calls an error during the test fails the test in the end."""
    yield window
    await window.keep_picture(tmp_path / f"{request.node.name}.png")
    window.check_errors()
