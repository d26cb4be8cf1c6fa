"""Attacks by hosts on the cache of mirrors: packs without an end, and packs that never become whole."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kardinal.git import GitCredentials, GitError, GitRunner, Repositories
from kardinal.git.errors import CacheFull
from tests.git.conftest import Git, bare, runner, server
from tests.support.clock import VirtualClock
from tests.support.smart_server import PASSWORD, USER, Exchange, SmartServer

__all__ = ["bare", "runner", "server"]

UNIT = 256 << 10
"""A quarter of the cache, in bytes."""
SECRET = GitCredentials(USER, PASSWORD)


@pytest.fixture
async def small(tmp_path: Path, runner: GitRunner, clock: VirtualClock) -> AsyncIterator[Repositories]:
    """Yield repositories whose cache has room for 1 MiB."""
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False, cache_size=4 * UNIT)
    yield repositories
    await repositories.close()


def taken(cache: Path) -> int:
    """Return the bytes of all files in the cache."""
    return sum(file.stat().st_size for file in cache.rglob("*") if file.is_file())


def put_large_file(bare: Git, size: int, *, repository: str = "gitops") -> None:
    """Give a copy of the repository a file that does not get smaller in a pack."""
    made = Git(bare.directory.parent / f"{repository}.git")
    if not made.directory.exists():
        bare("clone", "-q", "--bare", str(bare.directory), str(made.directory))
    large = bare.directory.parent / "large"
    large.write_bytes(os.urandom(size))
    blob = made("hash-object", "-w", str(large))
    tree = made("mktree", input=f"100644 blob {blob}\tlarge\n")
    made("update-ref", "refs/heads/main", made("commit-tree", tree, "-p", "main", "-m", "large"))


async def test_a_pack_is_stopped_where_the_share_of_its_namespace_ends(
    small: Repositories, server: SmartServer, bare: Git, tmp_path: Path
) -> None:
    put_large_file(bare, 16 * UNIT, repository="large")
    hostile = small.open(f"{server.url}/large.git", SECRET, owner="tenant")
    for _ in range(3):
        with pytest.raises(CacheFull, match="--git-cache-max-bytes"):
            await hostile.head("main")
        assert taken(tmp_path / "cache") < 3 * UNIT
    other = small.open(f"{server.url}/gitops.git", SECRET, owner="other")
    assert (await other.head("main")).commit == bare("rev-parse", "main")


async def test_a_namespace_leaves_others_a_quarter(
    small: Repositories, server: SmartServer, bare: Git, tmp_path: Path
) -> None:
    """Hold two mirrors of one namespace that would fill the cache together."""
    for name in ("one", "two", "three"):
        put_large_file(bare, 2 * UNIT, repository=name)
    one, two = (small.open(f"{server.url}/{name}.git", SECRET, owner="tenant") for name in ("one", "two"))
    await one.head("main")
    release = one.hold()
    with pytest.raises(CacheFull):
        await two.head("main")
    release()
    await two.head("main")
    other = small.open(f"{server.url}/gitops.git", SECRET, owner="other")
    assert await other.head("main")
    assert taken(tmp_path / "cache") <= 4 * UNIT


async def test_packs_that_never_become_whole_are_not_kept(
    small: Repositories, server: SmartServer, bare: Git, tmp_path: Path
) -> None:
    def lose_the_end(exchange: Exchange, path: str) -> bool:
        if exchange.command != "POST":
            return False
        head, _, content = exchange.ask_git().partition(b"\r\n\r\n")
        exchange.send(head + b"\r\n\r\n" + content[: len(content) // 2])
        return True

    put_large_file(bare, UNIT)
    hostile = small.open(f"{server.url}/gitops.git", SECRET, owner="tenant")
    server.trouble = lose_the_end
    for _ in range(3):
        with pytest.raises(GitError):
            await hostile.head("main")
        assert taken(tmp_path / "cache") < UNIT // 4


async def test_leftovers_of_a_killed_process_are_deleted_at_start(
    small: Repositories, server: SmartServer, tmp_path: Path, runner: GitRunner, clock: VirtualClock
) -> None:
    await small.open(f"{server.url}/gitops.git", SECRET).head("main")
    await small.close()
    (mirror,) = (tmp_path / "cache").glob("*.git")
    for name in ("objects/pack/tmp_pack_abcdef", "objects/incoming-x/pack"):
        (mirror / name).parent.mkdir(exist_ok=True)
        (mirror / name).write_bytes(bytes(UNIT))
    again = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=False)
    await again.open(f"{server.url}/gitops.git", SECRET).head("main")
    await again.close()
    assert taken(tmp_path / "cache") < UNIT
