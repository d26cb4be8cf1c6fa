"""Names of hosts that lead elsewhere, on a real sshd: which address ssh connects to, and which is not contacted."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from kardinal.git import GitCredentials, GitRunner, Repositories, RepositoryUnreachable
from kardinal.git.addresses import HostAddresses
from kardinal.git.errors import AddressRefused
from tests.attacks.test_host_addresses import Names
from tests.git.conftest import Git, bare, message, runner, setting
from tests.support.clock import VirtualClock
from tests.support.ssh_server import KeyPair, SshServer, find_sshd, new_key, serving_ssh

__all__ = ["bare", "runner"]

pytestmark = pytest.mark.skipif(
    find_sshd() is None or sys.platform != "linux", reason="needs sshd (Debian: openssh-server) on Linux"
)

CHECKED = "127.0.0.2"
NOW = "127.0.0.1"
"""The address of `localhost` that was looked at, and the one that the resolver of this machine has for ssh."""


@pytest.fixture(scope="module")
def key() -> KeyPair:
    return new_key()


@pytest.fixture(scope="module")
def sshd(key: KeyPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with serving_ssh(tmp_path_factory.mktemp("ssh") / "server", key.public, addresses=(CHECKED, NOW)) as server:
        yield server


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """Answer this process, and not the ssh that it starts."""
    names = Names(CHECKED)
    monkeypatch.setattr(socket, "getaddrinfo", names.getaddrinfo)
    return names


@pytest.fixture
async def strict(tmp_path: Path, runner: GitRunner, clock: VirtualClock) -> AsyncIterator[Repositories]:
    repositories = Repositories(
        tmp_path / "strict", runner=runner, clock=clock, allow_local=False, addresses=HostAddresses()
    )
    yield repositories
    await repositories.close()


@pytest.fixture
async def at_home(tmp_path: Path, runner: GitRunner, clock: VirtualClock) -> AsyncIterator[Repositories]:
    """Yield repositories of a program that may contact hosts on this machine."""
    repositories = Repositories(
        tmp_path / "at-home", runner=runner, clock=clock, allow_local=False, addresses=HostAddresses(loopback=True)
    )
    yield repositories
    await repositories.close()


def trusting(sshd: SshServer, key: KeyPair, host: str = "localhost") -> GitCredentials:
    """Return credentials that have the server's key as that of a host at its port."""
    known = f"[{host}]:{sshd.port} {sshd.known_hosts.partition(' ')[2]}"
    return GitCredentials(private_key=key.private, known_hosts=known)


def connections(sshd: SshServer) -> tuple[int, int]:
    return sshd.connections(CHECKED), sshd.connections(NOW)


async def test_ssh_connects_to_the_address_that_was_looked_at(
    at_home: Repositories, sshd: SshServer, bare: Git, key: KeyPair, names: Names
) -> None:
    checked, now = connections(sshd)
    repository = at_home.open(sshd.url(bare.directory, host="localhost"), trusting(sshd, key))
    landed = await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("rev-parse", "main") == landed.commit
    # Each fetch and push was looked at once, and led there.
    assert connections(sshd) == (checked + names.asked, now)
    assert names.asked


@pytest.mark.usefixtures("names")
async def test_a_key_is_known_by_the_name_of_its_host_and_not_by_the_address(
    at_home: Repositories, sshd: SshServer, bare: Git, key: KeyPair
) -> None:
    accepted = sshd.log.read_text().count("Accepted publickey")
    repository = at_home.open(sshd.url(bare.directory, host="localhost"), trusting(sshd, key, CHECKED))
    with pytest.raises(RepositoryUnreachable, match="known_hosts"):
        await repository.head("main")
    assert sshd.log.read_text().count("Accepted publickey") == accepted


async def test_a_name_that_this_machine_resolves_to_itself_is_not_contacted(
    strict: Repositories, sshd: SshServer, bare: Git, key: KeyPair
) -> None:
    before = connections(sshd)
    with pytest.raises(AddressRefused, match="loopback"):
        await strict.open(sshd.url(bare.directory, host="localhost"), trusting(sshd, key)).head("main")
    assert connections(sshd) == before


@pytest.mark.parametrize("answer", [CHECKED, "169.254.169.254", "100.100.100.200", "fe80::1", "::ffff:127.0.0.2"])
async def test_a_name_that_leads_to_a_refused_address_is_not_contacted(
    strict: Repositories, sshd: SshServer, key: KeyPair, names: Names, answer: str
) -> None:
    names.answers = [answer]
    before = connections(sshd)
    with pytest.raises(AddressRefused, match="no Git host is contacted"):
        await strict.open(sshd.url(Path("/gitops.git"), host="localhost"), trusting(sshd, key)).head("main")
    assert connections(sshd) == before


async def test_a_name_whose_answer_turns_to_a_refused_address_is_not_contacted_again(
    at_home: Repositories, sshd: SshServer, bare: Git, key: KeyPair, names: Names
) -> None:
    names.answers = [CHECKED, "169.254.169.254"]
    repository = at_home.open(sshd.url(bare.directory, host="localhost"), trusting(sshd, key))
    assert (await repository.head("main")).commit == bare("rev-parse", "main")
    before = connections(sshd)
    with pytest.raises(AddressRefused, match="an address of its link"):
        await repository.head("main")
    assert connections(sshd) == before
