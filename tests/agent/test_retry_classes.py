"""Each class of answer of a host is met for ever, three times or once, as docs/design/decisions.md says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, is_held, reached, start_agent, state
from tests.agent.sites import GitHubSite, Site
from tests.hosts.fakes.faults import Fault
from tests.support.world import World

PULLS = "/pulls$"
QUICKLY = {"message": "Validation Failed", "errors": [{"message": "was submitted too quickly"}]}
BASE = {"message": "Validation Failed", "errors": [{"field": "base", "code": "invalid"}]}
FOR_EVER = 1_000

on_github = pytest.mark.parametrize("site", ["github"], indirect=True)
pytestmark = pytest.mark.of_hosts


async def met(world: World, site: Site, fault: Fault) -> Fault:
    """Begin a promotion whose pull request cannot be opened."""
    assert isinstance(site, GitHubSite)
    site.server.faults.append(fault)
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    return fault


@on_github
@pytest.mark.parametrize(
    "fault",
    [
        Fault("POST", PULLS, status=502, times=FOR_EVER),
        Fault("POST", PULLS, "reset", times=FOR_EVER),
        Fault("POST", PULLS, status=429, headers={"Retry-After": "120"}, times=FOR_EVER),
        Fault("POST", PULLS, status=422, body=QUICKLY, times=FOR_EVER),
    ],
    ids=["unavailable", "no answer", "limited", "too quickly"],
)
async def test_what_passes_by_itself_is_waited_for_however_often_it_comes(
    world: World, site: Site, fault: Fault
) -> None:
    await met(world, site, fault)
    await world.live(timedelta(hours=1))
    assert fault.met > 5
    status = await state(world)
    assert (status["state"], status["retry"]["attempts"] > 5) == ("Promoting", True)
    fault.times = 0
    await world.live(timedelta(minutes=10))
    await reached(world, "WaitingForMerge")


@on_github
async def test_what_a_person_must_mend_is_held_however_long_it_takes(world: World, site: Site) -> None:
    denied = {"message": "Resource not accessible by personal access token"}
    fault = await met(world, site, Fault("POST", PULLS, status=403, body=denied, times=FOR_EVER))
    await world.live(timedelta(hours=1))
    assert fault.met > 5
    assert await is_held(world)
    fault.times = 0
    await world.live(timedelta(minutes=10))
    await reached(world, "WaitingForMerge")


@on_github
async def test_an_answer_that_nothing_is_known_of_is_met_three_times(world: World, site: Site) -> None:
    fault = await met(world, site, Fault("POST", PULLS, status=418, times=FOR_EVER))
    await world.live(timedelta(minutes=5))
    await reached(world, "Failed")
    assert fault.met == 3


@on_github
async def test_what_a_host_does_not_know_yet_is_asked_for_a_minute(world: World, site: Site) -> None:
    unknown = {"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}]}
    fault = await met(world, site, Fault("POST", PULLS, status=422, body=unknown, times=FOR_EVER))
    await world.live(timedelta(seconds=50))
    assert (await state(world))["state"] == "Promoting"
    await world.live(timedelta(minutes=3))
    await reached(world, "Failed")
    assert 3 < fault.met < 12


@on_github
async def test_what_a_host_refuses_for_good_is_asked_once(world: World, site: Site) -> None:
    fault = await met(world, site, Fault("POST", PULLS, status=422, body=BASE, times=FOR_EVER))
    await reached(world, "Failed")
    assert fault.met == 1
