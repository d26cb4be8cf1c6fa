"""A host behind a server of which a test may take any exchange: the same strikes meet every kind of host.

A fake host that is a server of its own is asked over a connection for each request; Git is answered by the server.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from tests.agent.sites import GiteaSite, GitHubSite, Site
from tests.hosts.fakes.github import FakeGitHub
from tests.support.fake_gitea import FakeGitea, fake_gitea
from tests.support.repository import GitRepository
from tests.support.smart_server import Exchange, SmartServer, serving

__all__ = ["Front", "gitea_front", "github_front"]

_PATIENCE = 10.0
_OWN_HEADERS = frozenset({"date", "server", "connection", "content-length", "transfer-encoding"})


class Front(Protocol):
    """A host with a server in front of it."""

    @property
    def site(self) -> Site: ...

    @property
    def server(self) -> SmartServer: ...

    def handle(self, exchange: Exchange, path: str) -> bool:
        """Answer a request of the API; False for one of Git, which is left to the server."""
        ...

    def snapshot(self) -> Callable[[], None]:
        """Return what puts the state of the host back to what it is now."""
        ...


class _GiteaFront:
    def __init__(self, fake: FakeGitea) -> None:
        self.site: Site = GiteaSite(fake)
        self.server = fake.server
        self.handle = fake.handle
        self.snapshot = fake.snapshot


class _FrontedGitHub(GitHubSite):
    def __init__(self, repository: GitRepository, fake: FakeGitHub, front: SmartServer) -> None:
        super().__init__(repository, fake)
        self._front = front

    @property
    def url(self) -> str:
        return f"{self._front.url}/acme/config.git"


class _GitHubFront:
    def __init__(self, repository: GitRepository, fake: FakeGitHub, server: SmartServer) -> None:
        self._fake = fake
        self.server = server
        self.site: Site = _FrontedGitHub(repository, fake, server)
        self.snapshot = fake.snapshot

    def handle(self, exchange: Exchange, path: str) -> bool:
        if not path.startswith("/api/"):
            return False
        context = ssl._create_unverified_context()  # noqa: S323 - a server of this process
        connection = http.client.HTTPSConnection("127.0.0.1", self._fake.port, context=context, timeout=_PATIENCE)
        try:
            connection.request(exchange.command, exchange.path, exchange.body or None, dict(exchange.headers.items()))
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        exchange.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OWN_HEADERS:
                exchange.send_header(name, value)
        exchange.send_header("Content-Length", str(len(content)))
        exchange.end_headers()
        exchange.wfile.write(content)
        return True


@contextmanager
def gitea_front(repository: GitRepository, certificate: Path, *, now: Callable[[], datetime]) -> Iterator[Front]:
    """Serve a repository at a Gitea."""
    with fake_gitea(repository, certificate, now=now) as fake:
        yield _GiteaFront(fake)


@contextmanager
def github_front(
    repository: GitRepository, certificate: Path, *, now: Callable[[], datetime], descriptions: Path
) -> Iterator[Front]:
    """Serve a repository at a GitHub, which holds every exchange against its published `descriptions`."""
    root = repository.path.parent / "served"
    (root / "acme").mkdir(parents=True)
    (root / "acme" / "config.git").symlink_to(repository.path)
    fake = FakeGitHub(root, certificate, descriptions, now=now)
    fake.start()
    try:
        with serving(root, certificate) as server:
            yield _GitHubFront(repository, fake, server)
    finally:
        fake.stop()
    assert not fake.problems, "\n".join(fake.problems)
