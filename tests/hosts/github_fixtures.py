"""A fake GitHub whose time a test owns, with one proposal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kardinal.scm import PullRequests
from tests.hosts.github_host import GitHubHost
from tests.support.clock import VirtualClock

__all__ = ["github", "github_pulls", "moment"]


@pytest.fixture
def moment() -> VirtualClock:
    """Return the time of kardinal and of the fake GitHub."""
    return VirtualClock()


@pytest.fixture
async def github(descriptions: Path, tmp_path: Path, moment: VirtualClock) -> AsyncIterator[GitHubHost]:
    """Yield a fake GitHub with a repository and the branch of a proposal."""
    made = GitHubHost(tmp_path, descriptions, clock=moment)
    try:
        made.start()
        made.propose()
        yield made
    finally:
        await made.close()


@pytest.fixture
async def github_pulls(github: GitHubHost) -> PullRequests:
    """Return its pull requests as kardinal's user sees them."""
    return await github.connect(clock=github.clock)
