"""The hosts that the contract suite runs on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kardinal.scm import PullRequests
from tests.git.conftest import manifests
from tests.hosts.gitea_host import GiteaHost
from tests.hosts.github_fixtures import github, github_pulls, moment
from tests.hosts.github_host import GitHubHost, descriptions
from tests.hosts.gitlab_host import FastForwardGitLabHost, GitLabHost
from tests.hosts.host import Host, patient
from tests.hosts.local_host import LocalHost
from tests.support.gitea import new_project

__all__ = ["descriptions", "github", "github_pulls", "moment"]

HOSTS: dict[str, tuple[str | None, Callable[[Path, Any], Host]]] = {
    "local": (None, lambda directory, _: LocalHost(directory)),
    "github": ("descriptions", GitHubHost),
    "gitlab": (None, lambda directory, _: GitLabHost(directory)),
    "gitlab-ff": (None, lambda directory, _: FastForwardGitLabHost(directory)),
    "gitea": ("gitea", lambda directory, server: GiteaHost(directory, new_project(server, manifests()))),
}
"""Provider -> (the fixture of the session that is its server, what makes one repository there)."""


REMOTE = tuple(name for name in HOSTS if name != "local")
"""The providers that kardinal reaches by HTTP."""


@pytest.fixture(scope="session", params=list(HOSTS))
def host_server(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """Return a provider and its server, which the tests of a worker share."""
    fixture, _ = HOSTS[request.param]
    return request.param, request.getfixturevalue(fixture) if fixture else None


@pytest.fixture
async def host(host_server: tuple[str, Any], tmp_path: Path) -> AsyncIterator[Host]:
    """Return a repository of this test alone, with a first commit on `main`."""
    name, server = host_server
    made = HOSTS[name][1](tmp_path, server)
    try:
        made.start()
        yield made
    finally:
        await made.close()


@pytest.fixture
async def pulls(host: Host) -> PullRequests:
    """Return the pull requests as kardinal's user sees them."""
    return patient(await host.connect())
