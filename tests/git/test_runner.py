"""Git never runs on the event loop, and no caller waits for threads that are gone."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from kardinal.git import GitRunner, Repositories, Repository, create_bare_repository
from kardinal.git.local import LocalBackend
from kardinal.git.refs import RefStore
from kardinal.git.shares import Lane
from kardinal.processes.threads import BlockingCallOnLoop
from kardinal.tree.repository_url import RepositoryURL
from tests.git.conftest import Git, message, setting, until
from tests.support.clock import VirtualClock


async def test_git_on_the_event_loop_raises(runner: GitRunner, bare: Git, tmp_path: Path, clock: VirtualClock) -> None:
    path = str(bare.directory)
    backend = LocalBackend(RepositoryURL(path, path), path, runner=runner)
    with pytest.raises(BlockingCallOnLoop, match="open"):
        backend.open()
    with pytest.raises(BlockingCallOnLoop, match="read"):
        RefStore(path).read("refs/heads/main")
    with pytest.raises(BlockingCallOnLoop, match="create_bare_repository"):
        create_bare_repository(tmp_path / "new.git", {}, clock=clock)
    assert (await runner.run(backend.open)).is_bare


async def test_a_job_counts_until_its_thread_is_done_with_it(runner: GitRunner) -> None:
    go = threading.Event()
    job = asyncio.create_task(runner.run(go.wait, 10))
    await until(lambda: runner.busy == 1)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert runner.busy == 1
    go.set()
    await until(lambda: runner.busy == 0)


async def test_transfers_do_not_take_the_threads_of_other_work(runner: GitRunner) -> None:
    go = threading.Event()
    stalled = [asyncio.create_task(runner.run_transfer(Lane(f"host-{n}", "team"), go.wait, 10)) for n in range(8)]
    assert await runner.run(lambda: "done") == "done"
    go.set()
    await asyncio.gather(*stalled)


async def test_a_caller_that_gives_up_leaves_the_others_their_commits(repository: Repository, bare: Git) -> None:
    landings = [
        asyncio.create_task(repository.land("main", setting("dev", b"v%d\n" % n), message("dev", f"app-{n}")))
        for n in range(3)
    ]
    await asyncio.sleep(0)
    landings[1].cancel()
    results = await asyncio.gather(*landings, return_exceptions=True)
    assert isinstance(results[1], asyncio.CancelledError)
    assert bare("log", "--format=%s", "main").splitlines() == ["promote app-2 to dev", "promote app-0 to dev", "Begin"]


async def test_operations_are_reported_with_their_outcome(
    tmp_path: Path, runner: GitRunner, bare: Git, clock: VirtualClock
) -> None:
    seen: list[tuple[str, str]] = []
    repositories = Repositories(
        tmp_path / "cache",
        runner=runner,
        clock=clock,
        allow_local=True,
        on_operation=lambda name, seconds, outcome: seen.append((name, outcome)),
    )
    repository = repositories.open(str(bare.directory))
    await repository.head("main")
    await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    with pytest.raises(Exception, match="no branch"):
        await repository.head("other")
    assert seen == [("head", "ok"), ("land", "ok"), ("head", "BranchNotFound")]
    await repositories.close()
