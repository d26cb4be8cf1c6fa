"""A Git host is no way into the agent's own machine, its link or its cloud, and no window to what is private."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.resolver import ThreadedResolver

from kardinal.clock import SystemClock
from kardinal.git import GitCredentials, GitRunner, Repositories
from kardinal.git.addresses import HostAddresses
from kardinal.git.errors import AddressRefused, PushRejected, RepositoryUnreachable
from kardinal.git.meaning import Expected, refused_push
from kardinal.scm import PROVIDERS, AccessDenied, PullRequests, RepositoryHost
from kardinal.scm.http import HostSessions
from tests.scm.test_host_client import FaultyHost, answering, host
from tests.support.repository import GitRepository
from tests.support.smart_server import PASSWORD, USER, serving

__all__ = ["host"]

INSIDE = [
    "169.254.169.254",
    "169.254.1.1",
    "100.100.100.200",
    "168.63.129.16",
    "fe80::1",
    "fd00:ec2::254",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "224.0.0.1",
]
HERE = ["127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1"]  # noqa: S104
PRIVATE = ["10.0.0.1", "172.16.3.4", "192.168.1.1", "100.64.0.1", "fd12::1"]
PUBLIC = ["140.82.121.4", "2606:50c0:8000::153"]


@pytest.mark.parametrize("address", INSIDE)
@pytest.mark.parametrize("loopback", [False, True])
def test_addresses_of_links_and_clouds_are_no_git_host(address: str, loopback: bool) -> None:
    rules = HostAddresses(loopback=loopback, hosts=("git.example.org",))
    with pytest.raises(AddressRefused, match="no Git host is contacted"):
        rules.check([PUBLIC[0], address], "git.example.org")


@pytest.mark.parametrize("address", HERE)
def test_this_machine_is_a_git_host_by_a_flag_alone(address: str) -> None:
    with pytest.raises(AddressRefused):
        HostAddresses(hosts=("git.example.org",)).check([address], "git.example.org")
    HostAddresses(loopback=True).check([address], "git.example.org")


def test_words_are_quoted_of_public_hosts_and_of_private_ones_that_are_listed() -> None:
    for address in PUBLIC:
        assert HostAddresses().check([address], "git.example.org")
    for address in PRIVATE:
        assert not HostAddresses().check([PUBLIC[0], address], "git.example.org")
        assert not HostAddresses(hosts=("other.example.org",)).check([address], "git.example.org")
        assert HostAddresses(hosts=("*.example.org",)).check([address], "git.example.org")


class Names:
    """DNS as an attacker answers it: other addresses for each question."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    def getaddrinfo(self, name: str, port: Any, *_: Any, **__: Any) -> list[Any]:
        self.asked += 1
        address = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]


@pytest.fixture
async def strict() -> AsyncIterator[HostSessions]:
    async with HostSessions(clock=SystemClock(), addresses=HostAddresses()) as sessions:
        yield sessions


def connected(url: str, sessions: HostSessions) -> PullRequests:
    provider = PROVIDERS["gitea"]
    target = RepositoryHost(url=url, clock=sessions.clock, sessions=sessions)
    authenticator = provider.authenticate({"token": "of-a-tenant"}, target)
    assert provider.connect is not None
    return provider.connect(
        RepositoryHost(url=url, clock=sessions.clock, sessions=sessions, authenticator=authenticator)
    )


async def test_an_api_on_this_machine_is_not_asked(host: FaultyHost, strict: HostSessions) -> None:
    port = host.url.rpartition(":")[2]
    for url in (host.url, f"http://localhost:{port}"):
        with pytest.raises(AddressRefused, match="loopback"):
            await connected(f"{url}/acme/config", strict).get(7)
    assert host.requests == []


async def test_an_api_whose_name_leads_inside_is_not_asked(
    strict: HostSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def inside(*_: Any, **__: Any) -> Any:
        return [
            {"hostname": "git.example.org", "host": "169.254.169.254", "port": 443, "family": 2, "proto": 6, "flags": 0}
        ]

    monkeypatch.setattr(ThreadedResolver, "resolve", inside)
    with pytest.raises(AddressRefused, match=r"git\.example\.org has an address of its link"):
        await connected("https://git.example.org/acme/config", strict).get(7)


async def test_an_api_at_a_private_address_is_not_quoted(host: FaultyHost, monkeypatch: pytest.MonkeyPatch) -> None:
    host.answer = answering(403, value={"message": "words of an internal service"})
    async with HostSessions(clock=SystemClock(), addresses=HostAddresses(loopback=True)) as sessions:
        with pytest.raises(AccessDenied, match="words of an internal service"):
            await connected(f"{host.url}/acme/config", sessions).get(7)
        monkeypatch.setattr(HostAddresses, "check", lambda *_: False)
        with pytest.raises(AccessDenied) as denied:
            await connected(f"{host.url}/acme/config", sessions).get(7)
    assert "internal" not in str(denied.value)
    assert "answered 403 to get" in str(denied.value)


def test_a_refusal_of_a_push_at_a_private_address_is_not_quoted() -> None:
    expected = Expected("refs/heads/main", "a" * 40)
    for quoted in (True, False):
        error = refused_push(
            "pre-receive hook declined", "x" * 900, "https://git.example.org/a", expected, quoted=quoted
        )
        assert isinstance(error, PushRejected)
        assert ("pre-receive" in str(error)) is quoted
        assert str(error).count("x") < 202


@pytest.mark.parametrize("url", ["https://127.0.0.1:1/acme/config", "ssh://git@localhost:1/acme/config"])
async def test_a_transfer_with_this_machine_is_refused(tmp_path: Path, url: str) -> None:
    repositories = Repositories(
        tmp_path, runner=GitRunner(workers=1), clock=SystemClock(), allow_local=False, addresses=HostAddresses()
    )
    try:
        with pytest.raises(AddressRefused, match="loopback"):
            await repositories.open(url, GitCredentials("git", "token")).head("main")
    finally:
        await repositories.close()


def test_the_addresses_of_a_host_are_looked_at_for_each_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names("140.82.121.4", "169.254.169.254")
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    found = HostAddresses().find("ssh://git@git.example.org:2222/acme/config")
    assert (found.addresses, names.asked) == (("140.82.121.4",), 1)
    with pytest.raises(AddressRefused):
        HostAddresses().find("https://git.example.org/acme/config")


def test_a_name_that_is_unknown_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(RepositoryUnreachable) as unreachable:
        HostAddresses().find("https://git.example.org/acme/config")
    assert unreachable.value.transient


async def test_git_itself_connects_to_the_address_that_was_looked_at(
    tmp_path: Path, repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No DNS knows the name: only the address that is handed on leads to the server."""
    names = Names("127.0.0.1")
    with serving(repository.path.parent, None) as server:
        monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
        port = server.url.rpartition(":")[2]
        repositories = Repositories(
            tmp_path / "mirrors",
            runner=GitRunner(workers=1),
            clock=SystemClock(),
            allow_local=False,
            insecure=(f"git.test.invalid:{port}",),
            addresses=HostAddresses(loopback=True),
        )
        url = f"http://git.test.invalid:{port}/{repository.path.name}"
        try:
            assert (
                await repositories.open(url, GitCredentials(USER, PASSWORD)).head("main")
            ).commit == repository.head()
        finally:
            await repositories.close()
            monkeypatch.undo()
    assert names.asked >= 1
