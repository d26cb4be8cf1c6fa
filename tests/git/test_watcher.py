"""Waking subscribers of a repository on this machine, by the file events of the operating system."""

from __future__ import annotations

import errno
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import watchfiles._rust_notify
from structlog.testing import capture_logs

from kardinal.git import GitRunner, Repositories, Repository, file_events
from tests.git.conftest import Git, manifests, until
from tests.support.clock import VirtualClock
from tests.support.references import references_behind

LOOK = 30.0


class Sleeper:
    """Counts how often it was woken."""

    def __init__(self) -> None:
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1


@pytest.fixture(autouse=True)
async def watchers_end(repositories: Repositories) -> AsyncIterator[None]:
    """Wait until the watchers have closed their descriptors, which the kernel does some milliseconds later."""
    yield
    await repositories.close()
    await until(lambda: threads() == 0 and not watched_descriptors())


def watched_descriptors() -> list[str]:
    """Return the descriptors of this process by which the kernel tells of files, where it has a list of them."""
    found = []
    for entry in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            found.append(str(entry.readlink()))
    return [name for name in found if name.endswith("inotify")]


async def seen(runner: GitRunner) -> None:
    """Wait until every watcher has seen how the references stand."""
    await until(lambda: runner.busy == 0 and not references_behind())


def initialise(path: Path, kind: str) -> None:
    subprocess.run(["git", "init", "-q", kind, "-b", "main", str(path)], check=True)


def threads() -> int:
    return sum(thread.name == "file-events" for thread in threading.enumerate())


async def test_a_subscriber_is_woken_when_a_reference_moves(
    repository: Repository, bare: Git, runner: GitRunner, clock: VirtualClock
) -> None:
    sleeper = Sleeper()
    subscription = repository.watch(sleeper.wake)
    await until(lambda: sleeper.woken == 1)
    await seen(runner)
    assert sleeper.woken == 1
    for command in (
        ("update-ref", "refs/heads/other", "main"),
        ("update-ref", "refs/heads/directories/of/its/own", "main"),
        ("update-ref", "refs/kardinal/pull/1/head", "main"),
        ("pack-refs", "--all"),
        ("update-ref", "-d", "refs/heads/other"),
    ):
        before = sleeper.woken
        bare(*command)
        await seen(runner)
        assert sleeper.woken > before, command
    assert clock.monotonic() == 0, "an event woke it, not the time"
    subscription.close()


async def test_a_change_of_another_file_wakes_no_subscriber(
    repository: Repository, bare: Git, runner: GitRunner
) -> None:
    sleeper = Sleeper()
    subscription = repository.watch(sleeper.wake)
    await until(lambda: sleeper.woken == 1)
    await seen(runner)
    (bare.directory / "refs" / "heads" / "main.lock").touch()
    (bare.directory / "config.new").touch()
    bare.directory.with_name("a neighbour").mkdir()
    (bare.directory / "refs" / "heads" / "main.lock").unlink()
    bare("update-ref", "refs/heads/other", "main")
    await seen(runner)
    assert sleeper.woken == 2
    subscription.close()


async def test_nothing_is_looked_at_without_a_subscriber(repository: Repository, clock: VirtualClock) -> None:
    first = Sleeper()
    second = Sleeper()
    subscriptions = [repository.watch(first.wake), repository.watch(second.wake)]
    await until(lambda: first.woken == second.woken == 1)
    assert len(clock.timers) == 1
    assert clock.timers[0].deadline == LOOK
    subscriptions[0].close()
    assert len(clock.timers) == 1
    subscriptions[1].close()
    assert clock.timers == []
    assert file_events.FILE_EVENTS.interests == frozenset()


async def test_all_repositories_share_one_thread(repositories: Repositories, tmp_path: Path, bare: Git) -> None:
    sleepers = [Sleeper() for _ in range(20)]
    copies = [shutil.copytree(bare.directory, tmp_path / f"copy-{number}.git") for number in range(len(sleepers))]
    for copy, sleeper in zip(copies, sleepers, strict=True):
        repositories.open(str(copy)).watch(sleeper.wake)
    await until(lambda: all(sleeper.woken == 1 for sleeper in sleepers))
    assert threads() == 1
    Git(copies[7])("update-ref", "refs/heads/other", "main")
    await until(lambda: sleepers[7].woken == 2)
    await repositories.close()
    await until(lambda: threads() == 0)


async def test_a_subscription_is_over_when_it_is_closed_however_often(
    repository: Repository, bare: Git, runner: GitRunner
) -> None:
    gone = Sleeper()
    there = Sleeper()
    subscription = repository.watch(gone.wake)
    other = repository.watch(there.wake)
    await until(lambda: there.woken == 1)
    subscription.close()
    subscription.close()
    bare("update-ref", "refs/heads/other", "main")
    await seen(runner)
    assert (gone.woken, there.woken) == (1, 2)
    other.close()


async def test_a_repository_that_comes_back_wakes_its_subscribers(repository: Repository, bare: Git) -> None:
    sleeper = Sleeper()
    subscription = repository.watch(sleeper.wake)
    await until(lambda: sleeper.woken == 1)
    away = bare.directory.rename(bare.directory.with_name("away.git"))
    await until(lambda: sleeper.woken == 2)
    away.rename(bare.directory)
    await until(lambda: sleeper.woken == 3)
    bare("update-ref", "refs/heads/other", "main")
    await until(lambda: sleeper.woken == 4)
    subscription.close()


async def test_a_repository_that_is_deleted_and_made_again_is_watched_again(
    repository: Repository, bare: Git, runner: GitRunner
) -> None:
    sleeper = Sleeper()
    subscription = repository.watch(sleeper.wake)
    await until(lambda: sleeper.woken == 1)
    shutil.rmtree(bare.directory)
    await until(lambda: sleeper.woken > 1)
    await seen(runner)
    initialise(bare.directory, "--bare")
    bare.commit(manifests())
    await seen(runner)
    before = sleeper.woken
    bare("update-ref", "refs/heads/other", "main")
    await seen(runner)
    assert sleeper.woken == before + 1
    subscription.close()


@pytest.mark.parametrize("there", ["nothing", "an empty directory"])
@pytest.mark.parametrize("kind", ["--bare", "--quiet"])
async def test_a_repository_that_is_not_there_yet_is_waited_for(
    repositories: Repositories, runner: GitRunner, tmp_path: Path, there: str, kind: str
) -> None:
    path = tmp_path / "not" / "yet" / "there"
    if there != "nothing":
        path.mkdir(parents=True)
    sleeper = Sleeper()
    subscription = repositories.open(str(path)).watch(sleeper.wake)
    await until(lambda: sleeper.woken == 1)
    initialise(path, kind)
    Git(path).commit(manifests())
    await seen(runner)
    assert sleeper.woken > 1
    subscription.close()


async def test_change_without_an_event_is_seen_after_a_while(
    repositories: Repositories, runner: GitRunner, bare: Git, tmp_path: Path, clock: VirtualClock
) -> None:
    above = tmp_path / "above"
    shutil.copytree(bare.directory, above / "between" / "gitops.git")
    sleeper = Sleeper()
    subscription = repositories.open(str(above / "between" / "gitops.git")).watch(sleeper.wake)
    await until(lambda: sleeper.woken == 1)
    await seen(runner)
    above.rename(tmp_path / "elsewhere")
    clock.advance_to_next_timer()
    await until(lambda: sleeper.woken == 2)
    subscription.close()


async def test_references_are_looked_at_where_the_system_refuses_to_watch(
    repository: Repository, bare: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "OS file watch limit reached")

    monkeypatch.setattr(watchfiles._rust_notify, "RustNotify", refuse)
    monkeypatch.setattr(file_events, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(file_events, "FILE_EVENTS", file_events.FileEvents())
    sleeper = Sleeper()
    with capture_logs() as logs:
        subscription = repository.watch(sleeper.wake)
        await until(lambda: sleeper.woken == 1)
        for wakes in range(2, 5):
            bare("update-ref", f"refs/heads/other-{wakes}", "main")
            await until(lambda wakes=wakes: sleeper.woken == wakes)  # type: ignore[misc]
        subscription.close()
        await until(lambda: threads() == 0)
    assert [entry["log_level"] for entry in logs] == ["warning"]


async def test_waiting_costs_no_fetch(
    repository: Repository, repositories: Repositories, runner: GitRunner, clock: VirtualClock
) -> None:
    sleeper = Sleeper()
    subscription = repository.watch(sleeper.wake)
    for _ in range(20):
        await until(lambda: bool(clock.timers))
        clock.advance_to_next_timer()
    assert repositories.fetches == 0
    subscription.close()
    await until(lambda: runner.busy == 0)


async def test_closing_the_repositories_ends_what_is_watched(
    repository: Repository, repositories: Repositories, clock: VirtualClock
) -> None:
    repository.watch(Sleeper().wake)
    await repositories.close()
    assert clock.timers == []
    assert file_events.FILE_EVENTS.interests == frozenset()
