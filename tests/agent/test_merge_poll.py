"""A merge that no webhook tells of is found by the poll, which costs one list for a repository."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, reached, start_agent, state
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV, STAGING
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("minutes between polls")

FIVE_MINUTES = timedelta(minutes=5, seconds=1)


async def waiting(world: World, gitea: FakeGitea, **options: float) -> None:
    await start_agent(world, **options)
    await deploy(world)
    await deploy(world, STAGING)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea), hosted_step(gitea, environment=STAGING))
    await reached(world, "WaitingForMerge")
    await reached(world, "WaitingForMerge", STAGING)
    await world.settle()


async def test_a_merge_is_found_within_five_minutes_by_one_list_for_all(world: World, gitea: FakeGitea) -> None:
    await waiting(world, gitea)
    await world.live(FIVE_MINUTES)
    gitea.requests.clear()
    number = next(pull.number for pull in gitea.pulls.values() if pull.head.endswith(DEV))
    gitea.merge(number)
    await world.live(FIVE_MINUTES)
    await reached(world, "Verified", within=timedelta(0))
    assert (await state(world, STAGING))["state"] == "WaitingForMerge"
    assert len(gitea.asked("GET /pulls")) == 1
    # The base has moved, so the other one is looked at as well.
    assert len(gitea.asked(r"GET /pulls/\d+")) == 2


async def test_while_nothing_changes_an_hour_costs_a_dozen_requests(world: World, gitea: FakeGitea) -> None:
    await waiting(world, gitea)
    await world.live(FIVE_MINUTES)
    gitea.requests.clear()
    await world.live(timedelta(hours=1))
    assert {(one.method, one.path) for one in gitea.requests} == {("GET", "/pulls")}
    assert len(gitea.requests) <= 12


async def test_nothing_is_asked_while_nothing_waits(world: World, gitea: FakeGitea) -> None:
    await waiting(world, gitea)
    for number in list(gitea.pulls):
        gitea.merge(number)
    await world.live(FIVE_MINUTES)
    await reached(world, "Verified", STAGING)
    await world.live(FIVE_MINUTES)
    gitea.requests.clear()
    await world.live(timedelta(hours=1))
    assert gitea.requests == []


async def test_zero_turns_it_off(world: World, gitea: FakeGitea) -> None:
    await waiting(world, gitea, scm_poll_interval=0.0)
    gitea.requests.clear()
    await world.live(timedelta(hours=1))
    assert gitea.requests == []


@pytest.mark.parametrize("status", [500, 401])
async def test_a_host_that_is_down_is_polled_again_and_ends_no_promotion(
    world: World, gitea: FakeGitea, status: int
) -> None:
    await waiting(world, gitea)
    gitea.outage = lambda request: (status, {"message": "not now"})
    await world.live(FIVE_MINUTES)
    gitea.outage = lambda request: None
    for number in list(gitea.pulls):
        gitea.merge(number)
    await world.live(FIVE_MINUTES)
    await reached(world, "Verified", within=timedelta(0))
