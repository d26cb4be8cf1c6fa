"""Killed anywhere in a whole life, controller and agent lose nothing and do nothing twice."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from kardinal.git import GitRunner, Repositories
from kardinal.kube import Client, load_connection
from kardinal.scm import local_pull_requests
from kardinal_local.plane import LocalPlane
from tests.resilience.lives.clock import FastClock
from tests.resilience.lives.hosts import GiteaPlace, LocalPlace, Place
from tests.resilience.lives.life import Life
from tests.resilience.lives.observed import Observed, observe
from tests.resilience.lives.plan import Plan, expected
from tests.resilience.lives.programs import Kills, Programs, processes
from tests.support.fake_gitea import FakeGitea, fake_giteas
from tests.support.names import of_run
from tests.support.repository import GitRepository, create_repository, sample_files

__all__ = ["processes"]

LIVES = int(os.environ.get("LIVES", "50"))
TOGETHER = 5
"""Lives on one plane, which share its programs and their deaths."""

KILLS = 10


@pytest.fixture
def clock() -> FastClock:
    """Return the time of the plane and of the programs."""
    return FastClock.start()


@dataclass(frozen=True)
class Surroundings:
    """A plane on which lives are lived, and what is around it."""

    plane: LocalPlane
    directory: Path
    clock: FastClock
    client: Client
    repositories: Repositories
    observed: Callable[[str], Observed]
    hosted: Callable[[GitRepository], FakeGitea]

    def lives(self, seeds: Sequence[int]) -> Sequence[Life]:
        """Return lives with a namespace and a repository each."""
        return [self._life(Plan.of(seed)) for seed in seeds]

    def _life(self, plan: Plan) -> Life:
        name = of_run(f"life-{plan.seed}")
        repository = create_repository(self.directory / f"{name}.git", sample_files(plan.environments))
        return Life(plan, name, self._place(plan, repository), client=self.client, observed=self.observed(name))

    def _place(self, plan: Plan, repository: GitRepository) -> Place:
        if plan.hosted:
            return GiteaPlace(self.hosted(repository))
        return LocalPlace(repository, local_pull_requests(self.repositories.open(repository.url), clock=self.clock))

    async def live(self, seeds: Sequence[int], *, kills: int) -> Sequence[str]:
        """Live lives beside each other, and hold what they come to against their plans; return the deaths."""
        lives = self.lives(seeds)
        programs = self.programs(Random(seeds[0]), kills=kills)
        try:
            async with programs:
                outcomes = await asyncio.gather(*(life.live() for life in lives))
            found = {life.plan: outcome for life, outcome in zip(lives, outcomes, strict=True)}
            assert found == {life.plan: expected(life.plan) for life in lives}
            assert programs.bugs == []
        except BaseException as error:
            note = [f"seeds {seeds}; processes died:", *programs.deaths, "their log ends:", programs.log]
            error.add_note("\n".join(note))
            raise
        return programs.deaths

    def programs(self, random: Random, *, kills: int) -> Programs:
        return Programs(self.plane, self.directory, clock=self.clock, random=random, kills=Kills(kills))


@pytest.fixture
async def surroundings(
    processes: None, prepared_plane: LocalPlane, clock: FastClock, tmp_path: Path
) -> AsyncIterator[Surroundings]:
    runner = GitRunner(workers=2)
    repositories = Repositories(tmp_path / "reviewer-git", runner=runner, clock=clock, allow_local=True)
    with ExitStack() as stack:
        hosted = stack.enter_context(fake_giteas(tmp_path / "served", now=clock.now))
        async with Client(await load_connection(prepared_plane.kubeconfig), user_agent="kardinal-test") as client:
            observed = observe(prepared_plane)
            yield Surroundings(prepared_plane, tmp_path, clock, client, repositories, observed, hosted)
        await repositories.close()
        runner.close()


@pytest.mark.timeout(300)
async def test_lives_without_a_death_come_to_what_is_expected(surroundings: Surroundings) -> None:
    assert await surroundings.live(range(TOGETHER), kills=0) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(0, LIVES, TOGETHER))
async def test_lives_with_deaths_come_to_the_same(surroundings: Surroundings, seed: int) -> None:
    assert await surroundings.live(range(seed, seed + TOGETHER), kills=KILLS)
