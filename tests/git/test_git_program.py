"""The `git` that transfers are made with: one that is missing, and how it is given its credentials."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from kardinal.git import GitCredentials, Repositories, Repository
from kardinal.git.errors import ProgramMissing
from tests.git.conftest import Git, message, setting
from tests.support.smart_server import PASSWORD, USER, Exchange, self_signed, serving
from tests.support.ssh_server import find_sshd, new_key, serving_ssh


def install(directory: Path, script: str) -> None:
    (directory / "git").write_text(f"#!/bin/sh\n{script}\n")
    (directory / "git").chmod(0o755)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "this machine has no git program in version 2.39 or newer"),
        ("echo git version 2.38.1", r"this machine has no git program in version 2.39 or newer \(\S+/git is older\)"),
        ('[ "$1" = version ] && echo git version 2.45.0 || echo /nonexistent', "no git program that speaks https"),
    ],
)
async def test_without_a_git_only_repositories_on_this_machine_are_promoted_to(
    remote: Repository, repository: Repository, tmp_path: Path, script: str | None, said: str
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    if script is not None:
        install(programs, script)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(programs))
        for _ in range(2):
            with pytest.raises(ProgramMissing, match=said) as caught:
                await remote.head("main")
        assert caught.value.blocked
        assert caught.value.remedy.startswith("Install git")
        landed = await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert (await remote.head("main")).commit == landed.commit


async def test_the_ssh_program_is_missed_by_name(
    repositories: Repositories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    git = "/usr/bin/git" if os.access("/usr/bin/git", os.X_OK) else "git"
    install(tmp_path / "bin", f'exec {git} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ProgramMissing, match="no ssh program, which ssh:// repositories need"):
        await repositories.open("ssh://git@127.0.0.1:1/gitops.git", GitCredentials(private_key="k")).head("main")


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where private files are kept on a system without files that have no name, such as macOS."""
    directory = tmp_path / "private"
    directory.mkdir()
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


async def test_credentials_are_given_by_files_where_there_are_none_without_names(
    repositories: Repositories, bare: Git, tmp_path: Path, private: Path
) -> None:
    bare("config", "http.receivepack", "true")
    certificate = self_signed(tmp_path)
    authority = "-----BEGIN CERT" + certificate.read_text().partition("-----BEGIN CERT")[2]
    modes: set[str] = set()

    def look(exchange: Exchange, path: str) -> bool:
        modes.update(f"{each.stat().st_mode & 0o777:o}" for each in private.rglob("*"))
        return False

    with serving(bare.directory.parent, certificate) as server:
        server.trouble = look
        remote = repositories.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD, authority=authority))
        landed = await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("rev-parse", "main") == landed.commit
    assert modes == {"700", "600"}
    assert list(private.iterdir()) == []


@pytest.mark.skipif(find_sshd() is None, reason="needs sshd (Debian: openssh-server)")
async def test_keys_are_given_by_files_where_there_are_none_without_names(
    repositories: Repositories, bare: Git, tmp_path: Path, private: Path
) -> None:
    key = new_key()
    with serving_ssh(tmp_path / "ssh", key.public) as sshd:
        credentials = GitCredentials(private_key=key.private, known_hosts=sshd.known_hosts)
        remote = repositories.open(sshd.url(bare.directory), credentials)
        landed = await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert bare("rev-parse", "main") == landed.commit
    assert list(private.iterdir()) == []
