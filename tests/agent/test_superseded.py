"""A Bundle writes to an environment once it is admitted, and takes back what has not landed once it is displaced."""

from __future__ import annotations

from datetime import timedelta

from kardinal.promotion.api import names
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.scm import PullRequests
from tests.agent.promotion_steps import (
    admit,
    create,
    deploy,
    displace,
    freeze,
    promotion_step,
    reached,
    start_agent,
    state,
    stop,
    supersede,
    withhold,
)
from tests.agent.test_crashes import Crash, start_crashing, until_crashed
from tests.support.names import DEV
from tests.support.repository import APPLICATION, GitRepository
from tests.support.world import World

AT_ONCE = timedelta(0)


async def test_prepared_change_is_dropped(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await freeze(world)
    await create(world, promotion_step(repository))
    await world.settle()
    await supersede(world)
    status = await reached(world, "Failed", within=AT_ONCE)
    assert status["message"] == "superseded by a newer Bundle of my-app before anything was written"
    conditions = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
    assert conditions == {"Held": ("False", "Released"), "Ready": ("False", "Superseded")}
    (event,) = await world.events("Superseded")
    assert event["type"] == "Normal"
    await world.delete(POLICY_GATE, names.freeze_name(APPLICATION))
    await world.settle()
    assert repository.promotions(DEV) == []


async def test_landed_change_goes_on_to_its_end(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    await supersede(world)
    await world.settle()
    await deploy(world)
    await reached(world, "Verified")


async def test_landed_change_missing_in_the_status_goes_on_to_its_end(world: World, repository: GitRepository) -> None:
    crash = Crash(1, written=False)
    await start_crashing(world, crash)
    await create(world, promotion_step(repository))
    await until_crashed(world, crash)
    assert len(repository.promotions(DEV)) == 1
    await supersede(world)
    await deploy(world)
    await start_agent(world)
    await reached(world, "Verified")


async def test_change_that_did_not_land_is_dropped(world: World, repository: GitRepository) -> None:
    crash = Crash(0, written=True)
    await start_crashing(world, crash)
    await create(world, promotion_step(repository))
    await until_crashed(world, crash)
    await supersede(world)
    await start_agent(world)
    status = await reached(world, "Failed")
    assert status["conditions"][0]["reason"] == "Superseded"
    assert repository.promotions(DEV) == []


async def test_a_change_is_made_ready_and_not_written_before_its_bundle_is_admitted(
    world: World, repository: GitRepository
) -> None:
    await create(world, promotion_step(repository))
    await withhold(world, "waits for Bundle my-app-0")
    await start_agent(world)
    await world.live(timedelta(seconds=3))
    status = await state(world)
    assert status["message"].endswith("waits for Bundle my-app-0")
    assert "preparedAt" in status
    assert status["diff"]
    assert repository.promotions(DEV) == []
    await admit(world)
    await reached(world, "HealthChecking", within=AT_ONCE)
    assert len(repository.promotions(DEV)) == 1


async def test_a_bundle_that_is_displaced_while_it_waits_ends_and_says_by_whom(
    world: World, repository: GitRepository
) -> None:
    await create(world, promotion_step(repository))
    await withhold(world, "waits for Bundle my-app-0")
    await start_agent(world)
    await displace(world, "my-app-2")
    status = await reached(world, "Failed", within=AT_ONCE)
    assert status["message"] == "superseded by Bundle my-app-2 before anything was written"


async def test_a_review_that_is_taken_over_is_closed_and_says_by_whom(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    opened = await reached(world, "WaitingForMerge")
    await displace(world, "my-app-2")
    status = await reached(world, "Failed")
    assert status["message"] == "superseded by Bundle my-app-2"
    closed = await reviewer.get(opened["pullRequest"]["number"])
    assert (closed.state, closed.comments) == ("closed", ("Bundle my-app-1 is superseded by Bundle my-app-2.",))


async def test_a_review_of_a_bundle_that_was_stopped_is_closed_and_says_why(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    opened = await reached(world, "WaitingForMerge")
    await stop(world, "stopped because eu failed")
    status = await reached(world, "Failed")
    (ready,) = [each for each in status["conditions"] if each["type"] == "Ready"]
    assert (status["message"], ready["reason"]) == ("stopped because eu failed", "Stopped")
    closed = await reviewer.get(opened["pullRequest"]["number"])
    assert (closed.state, closed.comments) == ("closed", ("Bundle my-app-1 is stopped because eu failed.",))


async def test_a_bundle_that_was_stopped_writes_nothing(world: World, repository: GitRepository) -> None:
    await create(world, promotion_step(repository))
    await withhold(world, "waits for Bundle my-app-0")
    await start_agent(world)
    await stop(world, "stopped because eu failed")
    status = await reached(world, "Failed", within=AT_ONCE)
    assert status["message"] == "stopped because eu failed; nothing was written"
    assert repository.promotions(DEV) == []
