"""A host with the API of Gitea that has bad days."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.resilience.faults.strikes import Day
from tests.support.clock import WorldClock
from tests.support.fake_gitea import fake_gitea
from tests.support.repository import GitRepository


@pytest.fixture
def day(repository: GitRepository, certificate: Path, clock: WorldClock) -> Iterator[Day]:
    """Yield a day at a host with one repository."""
    with fake_gitea(repository, certificate, now=clock.now) as host:
        yield Day(host)
