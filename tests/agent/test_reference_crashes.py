"""Killed at any move of a reference of a local repository, a promotion proposes, merges and lands once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kardinal.git.lockfile import LockFile
from kardinal.scm import PullRequests
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent
from tests.agent.test_crashes import Crash, start_crashing, until_crashed
from tests.support.names import DEV
from tests.support.repository import GitRepository
from tests.support.world import World

MOVES = ("the branch", "the claim of a number", "the record", "the base", "the record of the merge")
"""The moves of references in a promotion whose pull request is merged by kardinal, in order."""

PLACES = [f"{moment} {move}" for move in MOVES for moment in ("before", "after")]


def end_at(move: int, crash: Crash, *, after: bool, repository: GitRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the process die at a move of a reference, before or after it; a dead one moves none."""
    loop = asyncio.get_running_loop()
    real = LockFile.replace
    seen = 0

    def replace(lock: LockFile, content: bytes) -> None:
        nonlocal seen
        if not lock._path.startswith(str(repository.path / "refs")):
            return real(lock, content)
        if crash.happened:
            raise OSError("the process is dead")
        seen += 1
        if seen <= move:
            return real(lock, content)
        if after:
            real(lock, content)
        loop.call_soon_threadsafe(crash.die)
        crash.happened = True
        raise OSError("the process died here")

    monkeypatch.setattr(LockFile, "replace", replace)


@pytest.fixture(autouse=True)
def silent_death(logged_bugs: list[str]) -> Iterator[None]:
    """Forget what a process has logged that would not have lived to log it."""
    yield
    logged_bugs.clear()


@pytest.mark.parametrize("place", PLACES)
async def test_moved_step_finds_its_objects(
    world: World,
    repository: GitRepository,
    reviewer: PullRequests,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    moment, move = place.split(" ", 1)
    crash = Crash(1_000, written=False)
    await start_crashing(world, crash)
    end_at(MOVES.index(move), crash, after=moment == "after", repository=repository, monkeypatch=monkeypatch)
    await deploy(world)
    await create(world, promotion_step(repository, pr=True))
    await until_crashed(world, crash)
    monkeypatch.undo()

    await start_agent(world)
    status = await reached(world, "Verified")
    (found,) = await reviewer.list()
    (commit,) = repository.promotions(DEV)
    assert (found.state, status["commit"]) == ("merged", commit.sha)
    assert repository.branches() == ["main"]
