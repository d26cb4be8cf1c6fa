"""Hosts that have bad days: one with the API of Gitea, and another kind where a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosts.github_host import descriptions
from tests.resilience.faults.fronts import gitea_front, github_front
from tests.resilience.faults.strikes import Day
from tests.support.clock import WorldClock
from tests.support.repository import GitRepository

__all__ = ["descriptions"]


@pytest.fixture
def day(
    request: pytest.FixtureRequest, repository: GitRepository, certificate: Path, clock: WorldClock
) -> Iterator[Day]:
    """Yield a day at a host with one repository: `gitea`, or the kind that the test is parametrised with."""
    if getattr(request, "param", "gitea") == "gitea":
        with gitea_front(repository, certificate, now=clock.now) as front:
            yield Day(front)
        return
    found = request.getfixturevalue("descriptions")
    with github_front(repository, certificate, now=clock.now, descriptions=found) as front:
        yield Day(front)
