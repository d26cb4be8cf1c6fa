"""A reviewer: a person who looks at pull requests and decides, from a process of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kardinal.git import GitRunner, Repositories
from kardinal.scm import PullRequests, local_pull_requests
from tests.support.clock import WorldClock
from tests.support.fake_gitea import FakeGitea, fake_gitea
from tests.support.repository import GitRepository


@pytest.fixture
async def reviewer(repository: GitRepository, clock: WorldClock, tmp_path: Path) -> AsyncIterator[PullRequests]:
    """Yield the pull requests of the repository, as `kardinal pr` sees them."""
    runner = GitRunner(workers=1)
    repositories = Repositories(tmp_path / "reviewer", runner=runner, clock=clock, allow_local=True)
    yield local_pull_requests(repositories.open(repository.url), clock=clock)
    await repositories.close()
    runner.close()


@pytest.fixture
def gitea(repository: GitRepository, certificate: Path, clock: WorldClock) -> Iterator[FakeGitea]:
    """Yield a host with the API of Gitea and one repository."""
    with fake_gitea(repository, certificate, now=clock.now) as host:
        yield host
