"""A push that ends in the middle leaves lock files at the host: it is not ended, and locks that are there are told."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kardinal.git import (
    BranchLocked,
    GitCredentials,
    GitRunner,
    Repositories,
    Repository,
    TransferLimits,
    TransferStopped,
)
from tests.git.conftest import Git, manifests, message, setting, until
from tests.support.clock import VirtualClock
from tests.support.held_push import HeldPush
from tests.support.smart_server import PASSWORD, USER, SmartServer, killed_with_its_client


@pytest.fixture(autouse=True)
def few_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Meet a lock twice before it is told: `test_remote` meets one as often as the product does."""
    monkeypatch.setattr("kardinal.git.backend._REFUSALS", 2)


@pytest.fixture
def held(bare: Git, server: SmartServer) -> HeldPush:
    """Hold the next push at a host that kills Git when its client is gone."""
    server.trouble = killed_with_its_client
    return HeldPush(bare.directory)


async def test_a_push_under_way_ends_before_the_program_does(
    repositories: Repositories, remote: Repository, held: HeldPush, bare: Git
) -> None:
    landing = asyncio.create_task(remote.land("main", setting("dev", b"v2\n"), message("dev")))
    await until(held.reached)
    closing = asyncio.create_task(repositories.close())
    await asyncio.sleep(0)
    with pytest.raises(TransferStopped):
        await remote.head("main")
    assert not closing.done()
    held.release()
    landed = await landing
    await closing
    assert bare("rev-parse", "main") == landed.commit
    assert not any(lock.exists() for lock in held.locks)


@pytest.fixture
async def impatient(tmp_path: Path, runner: GitRunner, clock: VirtualClock) -> AsyncIterator[Repositories]:
    """Yield repositories that give a push no time to end."""
    limits = TransferLimits(ending=0)
    repositories = Repositories(tmp_path / "impatient", runner=runner, clock=clock, allow_local=False, limits=limits)
    yield repositories
    await repositories.close()


async def test_the_lock_of_a_killed_push_is_told_in_the_words_of_the_host_until_it_is_gone(
    impatient: Repositories, remote: Repository, held: HeldPush, bare: Git
) -> None:
    killed = impatient.open(remote.url, GitCredentials(USER, PASSWORD))
    landing = asyncio.create_task(killed.land("main", setting("dev", b"v2\n"), message("dev")))
    await until(held.reached)
    await impatient.close()
    with pytest.raises(TransferStopped):
        await landing
    held.forget()
    assert all(lock.exists() for lock in held.locks)

    with pytest.raises(BranchLocked, match=r"\.lock': File exists") as caught:
        await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert caught.value.transient
    assert re.search(r"has left \S*(main|HEAD)\.lock: remove it", caught.value.remedy)
    with pytest.raises(BranchLocked):
        await remote.check_push("main")
    for lock in held.locks:
        lock.unlink()
    assert (await remote.land("main", setting("dev", b"v2\n"), message("dev"))).changed
    await remote.check_push("main")


async def test_a_lock_counts_as_gone_when_the_branch_has_moved_or_nothing_was_pushed_for_long(
    remote: Repository, bare: Git, clock: VirtualClock
) -> None:
    lock = bare.directory / "refs" / "heads" / "main.lock"
    before = await remote.head("main")
    lock.touch()
    with pytest.raises(BranchLocked):
        await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    lock.unlink()
    with pytest.raises(BranchLocked):
        await remote.check_push("main")
    bare.commit({**manifests(), "README.md": "other\n"}, parent=before.commit)
    await remote.check_push("main")
    # Back at the commit at which the lock was met.
    bare("update-ref", "refs/heads/main", before.commit)
    with pytest.raises(BranchLocked):
        await remote.check_push("main")
    clock.skip(3600)
    await remote.check_push("main")


async def test_words_of_a_host_about_a_lock_are_one_line_of_bounded_length(remote: Repository, bare: Git) -> None:
    hook = bare.directory / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    long = "x" * 2_000
    hook.write_text(f"#!/bin/sh\necho \"Unable to create '/a\033[2Jb.lock': File exists {long}\" >&2; exit 1\n")
    hook.chmod(0o755)
    with pytest.raises(BranchLocked) as caught:
        await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    assert "\033" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_024


async def test_a_lock_that_a_push_has_met_counts_while_the_next_push_is_under_way(
    remote: Repository, bare: Git, tmp_path: Path
) -> None:
    lock = bare.directory / "refs" / "heads" / "main.lock"
    lock.touch()
    with pytest.raises(BranchLocked):
        await remote.land("main", setting("dev", b"v2\n"), message("dev"))
    reached = tmp_path / "reached"
    go = tmp_path / "go"
    os.mkfifo(go)
    hook = bare.directory / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {reached}\nread line < {go}\n")
    hook.chmod(0o755)
    landing = asyncio.create_task(remote.land("main", setting("dev", b"v2\n"), message("dev")))
    await until(reached.exists)
    try:
        with pytest.raises(BranchLocked):
            await remote.check_push("main")
    finally:
        lock.unlink()
        await asyncio.to_thread(go.write_text, "go\n")
        landed = await landing
    assert landed.changed
    await remote.check_push("main")
