"""The fixtures of every test: nothing leaks, and nothing blocks the event loop."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator

import hypothesis
import pytest

pytest_plugins = [
    "pytester",
    "tests.support.temporary",
    "tests.support.target",
    "tests.support.secret_values",
    "tests.support.repository",
    "tests.support.gitea",  # after the plugins it imports
    "tests.support.distribution",  # after the plugin it imports
    "tests.support.commands",
    "tests.support.clock",  # after the plugin it imports
    "tests.support.blocking",
    "tests.support.kubectl",
    "tests.support.leaks",
    "tests.support.logged",
    "tests.support.plane",  # after the plugin it imports
    "tests.support.smart_server",
    "tests.support.selection",  # after the plugin it imports
    "tests.support.world",
    "tests.support.promoted",  # after the plugin it imports
    "tests.local.contract.report",
]

# How long an example takes says something about the machine only; in CI a run can be repeated as it was.
hypothesis.settings.register_profile("kardinal", deadline=None, database=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("kardinal")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker more than there are cores: one of them is always waiting for a program or for time to pass.

    A worker that has a real API server has six programs to share a core with, and is none too few.
    """
    return (os.cpu_count() or 1) + (0 if config.getoption("target").real else 1)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected: there is none, and each look takes longer than the one before."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Keep what was collected, thousands of tests and all modules, out of every collection of garbage from here on."""
    gc.collect()
    gc.freeze()
    # Python's own 700, 10, 10 are for programs that live longer than a test: they took a tenth of the run.
    gc.set_threshold(50_000, 20, 50)
