"""An environment whose shard no agent serves says so after a minute, until an agent takes its step."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.api import BUNDLE, PROMOTION_STEP
from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from tests.bundles.reading import REPOSITORY, condition, phase
from tests.support.names import DEV, PROD, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_agent, start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("waits for a minute, which an agent has to take a step")

STEP = f"app-1-{DEV}"
TOLD = (
    "no agent serves shard eu: none has taken this promotion within a minute; start one with --shard=eu, or correct "
    f"the shard of environment {DEV} in Pipeline my-app"
)


def says(obj: JsonObject) -> str | None:
    found = condition(obj, "NoAgent")
    return found["message"] if found is not None else None


async def _unserved(world: World, url: GitRepository | str = REPOSITORY) -> None:
    await world.apply(pipeline(url, provider="git", environments=[environment(DEV, shard="eu")]), bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, STEP, lambda _: True)


async def test_step_and_bundle_say_that_no_agent_serves_the_shard_once_over_restarts(world: World) -> None:
    controller = await start_controller(world)
    await _unserved(world)
    await world.idle(timedelta(seconds=55))
    assert says(await world.get(PROMOTION_STEP, STEP)) is None
    step = await world.wait_for(PROMOTION_STEP, STEP, lambda obj: says(obj) is not None)
    assert (says(step), step["status"]["message"]) == (TOLD, TOLD)
    assert "state" not in step["status"]
    found = await world.wait_for(BUNDLE, "app-1", lambda obj: says(obj) is not None)
    assert says(found) == f"{DEV}: {TOLD}"
    assert found["status"]["environments"][DEV]["message"] == TOLD
    await world.stop(controller)
    await start_controller(world)
    await world.settle()
    await world.idle(timedelta(minutes=5))
    events = {(one["regarding"]["kind"], one["type"]) for one in await world.events("NoAgent")}
    assert events == {("PromotionStep", "Warning"), ("Bundle", "Warning")}
    assert len(await world.events("NoAgent")) == 2


async def test_an_agent_that_takes_the_step_ends_it(world: World, repository: GitRepository) -> None:
    await start_controller(world)
    await _unserved(world, repository)
    await world.wait_for(BUNDLE, "app-1", lambda obj: says(obj) is not None)
    await start_simulator(world, delay=timedelta(0))
    await start_agent(world, shard="eu")
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert condition(done, "NoAgent") is None
    assert condition(await world.get(PROMOTION_STEP, STEP), "NoAgent") is None


async def test_a_shard_that_is_served_says_nothing(world: World, repository: GitRepository) -> None:
    await start_controller(world)
    await start_agent(world, shard="eu")
    held = environment(DEV, shard="eu", approval="pr-review")
    await world.apply(pipeline(repository, environments=[held]), bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, STEP, lambda obj: obj.get("status", {}).get("state") == "WaitingForMerge")
    await world.live(timedelta(minutes=10))
    assert await world.events("NoAgent") == []


async def test_a_shard_that_is_nearly_the_name_of_one_that_is_served_is_told_which(
    world: World, repository: GitRepository
) -> None:
    await start_controller(world)
    await start_agent(world, shard="europe")
    served = environment(PROD, shard="europe", dependsOn=[])
    await world.apply(pipeline(repository, environments=[environment(DEV, shard="eurpe"), served]))
    await world.apply(bundle("app-1"))
    step = await world.wait_for(PROMOTION_STEP, STEP, lambda obj: says(obj) is not None)
    assert str(says(step)).endswith("in Pipeline my-app (did you mean europe?)")


async def test_a_step_that_an_agent_has_taken_loses_a_condition_that_was_left_on_it(world: World) -> None:
    await start_controller(world)
    await _unserved(world)
    step = await world.wait_for(PROMOTION_STEP, STEP, lambda obj: says(obj) is not None)
    # An agent of another version writes a state and keeps the conditions that it does not know.
    status = {"state": "Promoting", "conditions": step["status"]["conditions"]}
    await world.client.patch(PROMOTION_STEP, STEP, TEAM, {"status": status}, kind=PatchType.MERGE, subresource="status")
    await world.wait_for(PROMOTION_STEP, STEP, lambda obj: says(obj) is None)
    await world.wait_for(BUNDLE, "app-1", lambda obj: says(obj) is None)
