"""References of a local repository: every writer keeps the locks of Git, and none outlives its process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kardinal.git import PushRejected, RefMoved, Repository, TransientGitError
from tests.git.conftest import Git

ROOT = Path(__file__).parents[2]
MAIN = "refs/heads/main"
NAME = "refs/kardinal/pull/1/head"


async def test_a_reference_moves_only_from_the_value_it_has(repository: Repository, bare: Git) -> None:
    first = bare("rev-parse", "main")
    second = bare("commit-tree", "main^{tree}", "-p", "main", "-m", "second")
    with pytest.raises(RefMoved):
        await repository.references.update(MAIN, old=second, new=first)
    with pytest.raises(RefMoved):
        await repository.references.update(MAIN, old=None, new=second)
    with pytest.raises(RefMoved):
        await repository.references.update(MAIN, old=second, new=None)
    await repository.references.update(MAIN, old=first, new=second)
    assert bare("rev-parse", "main") == second
    assert not [file for file in (bare.directory / "refs" / "heads").iterdir() if file.name != "main"]


async def test_a_packed_reference_is_read_moved_and_deleted(repository: Repository, bare: Git) -> None:
    commit = bare("rev-parse", "main")
    bare("update-ref", "refs/heads/topic", commit)
    bare("tag", "-a", "-m", "t", "v1")
    bare("pack-refs", "--all", "--prune")
    references = repository.references
    assert await references.read("refs/heads/topic") == commit
    assert await references.below("refs/heads/") == {MAIN: commit, "refs/heads/topic": commit}
    second = bare("commit-tree", "main^{tree}", "-p", "main", "-m", "second")
    await references.update("refs/heads/topic", old=commit, new=second)
    assert bare("rev-parse", "topic") == second
    assert (await references.below("refs/heads/"))["refs/heads/topic"] == second
    await references.update("refs/heads/topic", old=second, new=None)
    assert bare("for-each-ref", "--format=%(refname)") == "refs/heads/main\nrefs/tags/v1"
    assert bare("rev-parse", "v1^{commit}") == commit
    assert await references.read("refs/heads/topic") is None


async def test_a_name_has_one_owner_however_many_claim_it(repository: Repository, bare: Git) -> None:
    commit = bare("rev-parse", "main")

    async def claim() -> bool:
        try:
            await repository.references.update(NAME, old=None, new=commit)
        except RefMoved:
            return False
        return True

    assert sum(await asyncio.gather(*(claim() for _ in range(20)))) == 1


async def test_deleting_removes_the_directories_that_are_left_empty(repository: Repository, bare: Git) -> None:
    commit = bare("rev-parse", "main")
    await repository.references.update("refs/heads/a/b/c", old=None, new=commit)
    await repository.delete_branch("a/b/c")
    assert sorted(path.name for path in (bare.directory / "refs" / "heads").iterdir()) == ["main"]
    await repository.references.update("refs/heads/a", old=None, new=commit)
    assert bare("rev-parse", "a") == commit


async def test_a_branch_can_take_the_name_of_an_empty_directory(repository: Repository, bare: Git) -> None:
    (bare.directory / "refs" / "heads" / "a" / "b").mkdir(parents=True)
    await repository.references.update("refs/heads/a", old=None, new=bare("rev-parse", "main"))
    assert bare("rev-parse", "a") == bare("rev-parse", "main")


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize(("there", "wanted"), [("a", "a/b"), ("a/b", "a")])
async def test_a_branch_can_not_be_the_directory_of_another(
    repository: Repository, bare: Git, there: str, wanted: str, packed: bool
) -> None:
    commit = bare("rev-parse", "main")
    bare("update-ref", f"refs/heads/{there}", commit)
    if packed:
        bare("pack-refs", "--all", "--prune")
    with pytest.raises(PushRejected, match="can not be created"):
        await repository.references.update(f"refs/heads/{wanted}", old=None, new=commit)
    assert bare("rev-parse", there) == commit


async def test_a_held_reference_is_locked_for_all_other_writers(repository: Repository, bare: Git) -> None:
    commit = bare("rev-parse", "main")
    blob = await repository.references.store(b"first")
    await repository.references.update(NAME, old=None, new=blob)
    async with repository.references.hold(NAME) as held:
        assert held.content == b"first"
        with pytest.raises(AssertionError, match="Unable to create"):
            bare("update-ref", NAME, commit)
        await held.write(b"second")
    assert bare("cat-file", "blob", NAME) == "second"
    bare("update-ref", NAME, commit)


async def test_a_lock_of_git_is_respected_and_named(repository: Repository, bare: Git) -> None:
    lock = bare.directory / "refs" / "heads" / "main.lock"
    lock.touch()
    commit = bare("rev-parse", "main")
    with pytest.raises(TransientGitError, match=r"main\.lock"):
        await repository.references.update(MAIN, old=commit, new=None)
    assert lock.exists()
    assert os.listdir(lock.parent) in (["main", "main.lock"], ["main.lock", "main"])


def start_holding(path: Path) -> subprocess.Popen[bytes]:
    """Start a process that takes the lock of a reference, says so, and keeps it."""
    script = f"""
import sys, time
from kardinal.git.lockfile import locked
with locked({str(path)!r}):
    print("held", flush=True)
    time.sleep(60)
"""
    return subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE
    )


async def test_the_lock_of_a_killed_process_is_taken_over(repository: Repository, bare: Git) -> None:
    with start_holding(bare.directory / MAIN) as owner:
        assert owner.stdout is not None
        await asyncio.to_thread(owner.stdout.readline)
        first = bare("rev-parse", "main")
        second = bare("commit-tree", "main^{tree}", "-p", "main", "-m", "second")
        with pytest.raises(TransientGitError, match="another process holds"):
            await repository.references.update(MAIN, old=first, new=second)
        owner.send_signal(signal.SIGKILL)
    await repository.references.update(MAIN, old=first, new=second)
    assert bare("rev-parse", "main") == second
    assert os.listdir(bare.directory / "refs" / "heads") == ["main"]


async def test_a_caller_that_gives_up_while_holding_leaves_no_lock(repository: Repository, bare: Git) -> None:
    inside = asyncio.Event()

    async def hold() -> None:
        async with repository.references.hold(MAIN):
            inside.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await inside.wait()
    holder.cancel()
    with pytest.raises(asyncio.CancelledError):
        await holder
    bare("update-ref", MAIN, bare("commit-tree", "main^{tree}", "-m", "free"))
