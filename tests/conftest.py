"""What holds for every test: nothing leaks, nothing blocks the event loop, and time stands still unless moved."""

from __future__ import annotations

import pytest

from tests.support.clock import VirtualClock

pytest_plugins = [
    "pytester",
    "tests.support.blocking",
    "tests.support.kubectl",
    "tests.support.leaks",
    "tests.support.plane",
    "tests.support.repository",
    "tests.support.world",
]


@pytest.fixture
def clock() -> VirtualClock:
    """The time of this test: a Tuesday morning, until the test advances it."""
    return VirtualClock()
