"""A superseded Bundle takes back what has not landed; what has landed goes on to its end."""

from __future__ import annotations

from datetime import timedelta

from kardinal.api import POLICY_GATE, names
from tests.agent.promotion_steps import create, deploy, freeze, promotion_step, reached, start_agent, supersede
from tests.agent.test_crashes import Crash, start_crashing, until_crashed
from tests.support.names import DEV
from tests.support.repository import APPLICATION, GitRepository
from tests.support.world import World

AT_ONCE = timedelta(0)


async def test_what_was_only_prepared_is_dropped(world: World, repository: GitRepository) -> None:
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


async def test_what_has_landed_goes_on_to_its_end(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    await supersede(world)
    await world.settle()
    await deploy(world)
    await reached(world, "Verified")


async def test_what_landed_and_is_not_in_the_status_goes_on_to_its_end(world: World, repository: GitRepository) -> None:
    crash = Crash(1, written=False)
    await start_crashing(world, crash)
    await create(world, promotion_step(repository))
    await until_crashed(world, crash)
    assert len(repository.promotions(DEV)) == 1
    await supersede(world)
    await deploy(world)
    await start_agent(world)
    await reached(world, "Verified")


async def test_what_was_about_to_land_and_did_not_is_dropped(world: World, repository: GitRepository) -> None:
    crash = Crash(0, written=True)
    await start_crashing(world, crash)
    await create(world, promotion_step(repository))
    await until_crashed(world, crash)
    await supersede(world)
    await start_agent(world)
    status = await reached(world, "Failed")
    assert status["message"] == "superseded by a newer Bundle of my-app"
    assert repository.promotions(DEV) == []
