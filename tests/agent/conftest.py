"""The hosts of promotions, and a reviewer: a person who decides about pull requests, from a process of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kardinal.git import GitRunner, Repositories
from kardinal.scm import PullRequests, local_pull_requests
from tests.agent.sites import Site, serving_site
from tests.agent.without_server import Promotions, remote_of
from tests.hosts.github_host import descriptions
from tests.support.clock import VirtualClock, WorldClock
from tests.support.fake_gitea import FakeGitea, fake_gitea
from tests.support.repository import GitRepository

__all__ = ["descriptions"]


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


@pytest.fixture
def site(
    request: pytest.FixtureRequest, repository: GitRepository, certificate: Path, clock: WorldClock
) -> Iterator[Site]:
    """Yield a repository at the kind of host that the test is parametrised with (`EVERYWHERE`), else at a Gitea."""
    name = getattr(request, "param", "gitea")
    found = request.getfixturevalue("descriptions") if name == "github" else None
    with serving_site(name, repository, certificate, now=clock.now, descriptions=found) as site:
        yield site


@pytest.fixture
async def promotions(site: Site, clock: VirtualClock, tmp_path: Path) -> AsyncIterator[Promotions]:
    """Yield promotions at the host, without an API server."""
    async with remote_of(site, tmp_path / "cache", clock=clock) as remote:
        yield Promotions(site, remote, clock)
