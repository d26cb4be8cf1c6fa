"""Killed anywhere in a whole life, controller and agent lose nothing and do nothing twice."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from kardinal.git import GitRunner, Repositories
from kardinal.kube import Client, load_connection
from kardinal_local.plane import LocalPlane
from tests.resilience.lives.clock import FastClock
from tests.resilience.lives.life import Life, undisturbed
from tests.resilience.lives.observed import Observed
from tests.resilience.lives.programs import Programs, processes
from tests.support.names import PROD
from tests.support.repository import create_repository, sample_files

__all__ = ["processes"]

LIVES = int(os.environ.get("LIVES", "60"))
TOGETHER = 5
"""Lives on one plane, which share its programs and their deaths."""

KILLS = 10


@pytest.fixture
def clock() -> FastClock:
    """Return the time of the plane and of the programs."""
    return FastClock.start()


@dataclass(frozen=True)
class Place:
    """A plane on which lives are lived, and a reviewer's tools."""

    plane: LocalPlane
    directory: Path
    clock: FastClock
    client: Client
    repositories: Repositories
    observed: Observed

    def life(self, seed: int) -> Life:
        """Return a life with a repository of its own."""
        repository = create_repository(self.directory / f"gitops-{seed}.git", sample_files([PROD]))
        return Life(
            seed,
            repository,
            client=self.client,
            observed=self.observed,
            repositories=self.repositories,
            clock=self.clock,
        )

    def programs(self, random: Random, *, kills: int) -> Programs:
        return Programs(self.plane, self.directory, clock=self.clock, random=random, kills=kills)


@pytest.fixture
async def place(processes: None, prepared_plane: LocalPlane, clock: FastClock, tmp_path: Path) -> AsyncIterator[Place]:
    runner = GitRunner(workers=2)
    repositories = Repositories(tmp_path / "reviewer-git", runner=runner, clock=clock, allow_local=True)
    async with Client(await load_connection(prepared_plane.kubeconfig), user_agent="kardinal-test") as client:
        yield Place(prepared_plane, tmp_path, clock, client, repositories, Observed(prepared_plane))
    await repositories.close()
    runner.close()


@pytest.mark.parametrize("seed", [0, 1], ids=["rolled back by itself", "rolled back by hand"])
async def test_a_life_without_a_death(place: Place, seed: int) -> None:
    async with place.programs(Random(seed), kills=0):
        assert await place.life(seed).live() == undisturbed(seed)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", range(0, LIVES, TOGETHER))
async def test_lives_with_deaths_come_to_the_same(place: Place, seed: int) -> None:
    lives = [place.life(seed + number) for number in range(TOGETHER)]
    programs = place.programs(Random(seed), kills=KILLS)
    try:
        async with programs:
            outcomes = await asyncio.gather(*(life.live() for life in lives))
        assert {life.seed: outcome for life, outcome in zip(lives, outcomes, strict=True)} == {
            life.seed: undisturbed(life.seed) for life in lives
        }
    except BaseException as error:
        error.add_note("\n".join([f"seed {seed}; processes died:", *programs.deaths, "their log ends:", programs.log]))
        raise
    assert programs.deaths
