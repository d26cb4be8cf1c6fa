"""A merge that no webhook tells of is found by the poll, which costs one list for a repository."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.agent.hosted import Hosted, git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, reached, start_agent, state
from tests.agent.sites import EVERYWHERE, Site
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV, STAGING
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("minutes between polls")

FIVE_MINUTES = timedelta(minutes=5, seconds=1)


async def waiting(world: World, host: Hosted, **options: float) -> None:
    await start_agent(world, **options)
    await deploy(world)
    await deploy(world, STAGING)
    await world.apply(git_secret(host))
    await create(world, hosted_step(host), hosted_step(host, environment=STAGING))
    await reached(world, "WaitingForMerge")
    await reached(world, "WaitingForMerge", STAGING)
    await world.settle()


@EVERYWHERE
async def test_a_merge_is_found_within_five_minutes_by_one_list_for_all(world: World, site: Site) -> None:
    await waiting(world, site)
    await world.live(FIVE_MINUTES)
    site.forget()
    number = next(number for number, pull in site.proposals().items() if pull.head.endswith(DEV))
    site.merge(number)
    await world.live(FIVE_MINUTES)
    await reached(world, "Verified", within=timedelta(0))
    assert (await state(world, STAGING))["state"] == "WaitingForMerge"
    assert len(site.asked("list")) == 1
    # The base has moved, so the other one is looked at as well.
    assert len(site.asked("get")) == 2


async def test_while_nothing_changes_an_hour_costs_a_dozen_requests(world: World, site: Site) -> None:
    await waiting(world, site)
    await world.live(FIVE_MINUTES)
    site.forget()
    await world.live(timedelta(hours=1))
    assert site.lines() == site.asked("list")
    assert len(site.lines()) <= 12


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
