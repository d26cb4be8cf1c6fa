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


async def waiting(world: World, host: Hosted, *environments: str, **options: float) -> None:
    await start_agent(world, **options)
    await world.apply(git_secret(host))
    for environment in environments:
        await deploy(world, environment)
    await create(world, *(hosted_step(host, environment=environment) for environment in environments))
    for environment in environments:
        await reached(world, "WaitingForMerge", environment)
    await world.settle()


@EVERYWHERE
async def test_a_merge_is_found_within_five_minutes_by_one_list_for_all(world: World, site: Site) -> None:
    await waiting(world, site, DEV, STAGING)
    await world.live(FIVE_MINUTES)

    # While nothing changes, a quarter of an hour costs three requests.
    site.forget()
    await world.live(timedelta(minutes=15))
    assert site.lines() == site.asked("list")
    assert len(site.lines()) <= 3

    site.forget()
    first, second = sorted(site.proposals(), key=lambda number: not site.proposals()[number].head.endswith(DEV))
    site.merge(first)
    await world.live(FIVE_MINUTES)
    await reached(world, "Verified", within=timedelta(0))
    assert (await state(world, STAGING))["state"] == "WaitingForMerge"
    assert len(site.asked("list")) == 1
    # The base has moved, so the other one is looked at as well.
    assert len(site.asked("get")) == 2

    # Nothing is asked while nothing waits.
    site.merge(second)
    await world.live(FIVE_MINUTES)
    await reached(world, "Verified", STAGING, within=timedelta(0))
    await world.live(FIVE_MINUTES)
    site.forget()
    await world.live(timedelta(minutes=10))
    assert site.lines() == []


async def test_zero_turns_it_off(world: World, gitea: FakeGitea) -> None:
    await waiting(world, gitea, DEV, scm_poll_interval=0.0)
    gitea.requests.clear()
    await world.live(timedelta(hours=1))
    assert gitea.requests == []


async def test_a_host_that_is_down_is_polled_again_and_ends_no_promotion(world: World, gitea: FakeGitea) -> None:
    await waiting(world, gitea, DEV)
    for status in (500, 401):
        gitea.outage = lambda request, status=status: (status, {"message": "not now"})  # type: ignore[misc]
        await world.live(FIVE_MINUTES)
        assert (await state(world))["state"] == "WaitingForMerge"
    gitea.outage = lambda request: None
    gitea.merge(1)
    await world.live(FIVE_MINUTES)
    await reached(world, "Verified", within=timedelta(0))
