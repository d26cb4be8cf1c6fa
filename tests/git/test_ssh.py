"""A repository behind a real sshd: keys, known hosts, refusals."""

from __future__ import annotations

import dataclasses
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kardinal.git import (
    AuthenticationFailed,
    GitCredentials,
    GitRunner,
    PushRejected,
    Repositories,
    Repository,
    RepositoryUnreachable,
    TransferLimits,
    TransferStopped,
)
from tests.git.conftest import Git, manifests, message, setting
from tests.git.test_remote import hook
from tests.support.clock import VirtualClock
from tests.support.ssh_server import KeyPair, SshServer, find_sshd, new_key, serving_ssh

pytestmark = pytest.mark.skipif(find_sshd() is None, reason="needs sshd (Debian: openssh-server) and ssh")


@pytest.fixture(scope="module")
def key() -> KeyPair:
    return new_key()


@pytest.fixture(scope="module")
def sshd(key: KeyPair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with serving_ssh(tmp_path_factory.mktemp("ssh") / "server", key.public) as server:
        yield server


@pytest.fixture
def credentials(key: KeyPair, sshd: SshServer) -> GitCredentials:
    return GitCredentials(private_key=key.private, known_hosts=sshd.known_hosts)


@pytest.fixture
def stranger(credentials: GitCredentials) -> GitCredentials:
    """Return credentials with a key that the server does not know."""
    return dataclasses.replace(credentials, private_key=new_key().private)


@pytest.fixture
def home(key: KeyPair, tmp_path: Path) -> Path:
    """Return a home directory with the right key."""
    directory = tmp_path / "home" / ".ssh"
    directory.mkdir(parents=True)
    (directory / "id_ed25519").write_text(key.private)
    (directory / "id_ed25519").chmod(0o600)
    return directory.parent


@pytest.fixture
def over_ssh(repositories: Repositories, sshd: SshServer, bare: Git, credentials: GitCredentials) -> Repository:
    return repositories.open(sshd.url(bare.directory), credentials)


async def test_an_edit_is_pushed_with_the_key_of_the_credentials(over_ssh: Repository, bare: Git) -> None:
    landed = await over_ssh.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("rev-parse", "main") == landed.commit
    other = bare.commit({**manifests(), "README.md": "other\n"}, parent=landed.commit)
    again = await over_ssh.land("main", setting("prod", b"v2\n"), message("prod"))
    assert bare("rev-parse", "main^") == other
    assert bare("rev-parse", "main") == again.commit


async def test_a_push_that_the_host_refuses_is_told_in_its_words(over_ssh: Repository, bare: Git) -> None:
    hook(bare, "pre-receive", "echo 'main is protected' >&2; exit 1")
    with pytest.raises(PushRejected, match="main is protected"):
        await over_ssh.land("main", setting("dev", b"v2\n"), message("dev"))


async def test_a_key_that_the_host_does_not_know_is_refused(
    repositories: Repositories, sshd: SshServer, bare: Git, stranger: GitCredentials
) -> None:
    with pytest.raises(AuthenticationFailed, match="refuses the credentials") as caught:
        await repositories.open(sshd.url(bare.directory), stranger).head("main")
    assert caught.value.blocked


@pytest.mark.parametrize("known", ["", "another key"])
async def test_a_host_that_is_not_known_is_not_talked_to(
    repositories: Repositories, sshd: SshServer, bare: Git, credentials: GitCredentials, known: str
) -> None:
    hosts = f"[127.0.0.1]:{sshd.port} {new_key().public}\n" if known else "# no host\n"
    before = sshd.log.read_text().count("Accepted publickey")
    with pytest.raises(RepositoryUnreachable, match="known_hosts") as caught:
        await repositories.open(sshd.url(bare.directory), dataclasses.replace(credentials, known_hosts=hosts)).head(
            "main"
        )
    assert not caught.value.transient
    assert sshd.log.read_text().count("Accepted publickey") == before


async def test_keys_and_settings_of_the_machine_are_not_used(
    over_ssh: Repository,
    repositories: Repositories,
    stranger: GitCredentials,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (await over_ssh.head("main")).commit
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_SSH_COMMAND", f"ssh -i {home}/.ssh/id_ed25519")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nonexistent")
    with pytest.raises(AuthenticationFailed):
        await repositories.open(over_ssh.url, stranger).head("main")


async def test_a_repository_that_is_not_there_is_looked_for_again(
    repositories: Repositories, sshd: SshServer, bare: Git, credentials: GitCredentials
) -> None:
    with pytest.raises(RepositoryUnreachable, match="does not exist") as caught:
        await repositories.open(sshd.url(bare.directory.parent / "nothing.git"), credentials).head("main")
    assert caught.value.transient


async def test_a_host_that_does_not_answer_is_worth_another_attempt(
    repositories: Repositories, credentials: GitCredentials
) -> None:
    with pytest.raises(RepositoryUnreachable, match="can not be reached") as caught:
        await repositories.open("ssh://git@127.0.0.1:1/gitops.git", credentials).head("main")
    assert caught.value.transient


async def test_a_host_that_accepts_and_says_nothing_is_given_up(
    credentials: GitCredentials, tmp_path: Path, runner: GitRunner, clock: VirtualClock
) -> None:
    limits = TransferLimits(advertisement=2)
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False, limits=limits)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"ssh://git@127.0.0.1:{silent.getsockname()[1]}/gitops.git"
        with pytest.raises(TransferStopped, match="has not listed its branches"):
            await repositories.open(url, credentials).head("main")
    await repositories.close()


async def test_the_private_key_is_in_no_argument_environment_or_file(
    over_ssh: Repository, key: KeyPair, tmp_path: Path
) -> None:
    # A wrapper in place of ssh looks at what it was given.
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f'#!/bin/sh\n{{ echo "$0" "$@"; env; cat /proc/$PPID/cmdline; }} >> {tmp_path}/seen\nexec /usr/bin/ssh "$@"\n'
    )
    wrapper.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}")
        await over_ssh.land("main", setting("dev", b"v2\n"), message("dev"))
    seen = (tmp_path / "seen").read_text(errors="replace")
    assert "UserKnownHostsFile=/proc/" in seen
    secret = key.private.splitlines()[2]
    assert secret not in seen
    for file in (tmp_path / "cache").rglob("*"):
        assert not file.is_file() or secret.encode() not in file.read_bytes()


async def test_a_host_that_leaves_out_files_and_does_not_give_them_is_fetched_whole(
    over_ssh: Repository, bare: Git
) -> None:
    # This sshd does not pass on the version of the protocol, and the first one gives no single objects.
    bare("config", "uploadpack.allowFilter", "true")
    head = await over_ssh.head("main")
    assert await over_ssh.read(head.commit, "README.md") == b"hello\n"
    assert await over_ssh.read(head.commit, "base/deployment.yaml") == b"kind: Deployment\n"
