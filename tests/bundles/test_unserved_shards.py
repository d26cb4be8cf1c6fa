"""An environment whose shard no agent serves says so after a minute, until an agent takes its step."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject, Key
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal.runtime import Manager
from kardinal_controller.unserved import UnservedReconciler
from tests.bundles.in_memory import StoredObjects
from tests.bundles.reading import REPOSITORY, condition
from tests.support.clock import VirtualClock
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.promoted import step_of
from tests.support.world import World

STEP = f"app-1-{DEV}"
TOLD = (
    "no agent serves shard eu: none has taken this promotion within a minute; start one with --shard=eu, or correct "
    f"the shard of environment {DEV} in Pipeline my-app"
)


def says(obj: JsonObject) -> str | None:
    found = condition(obj, "NoAgent")
    return found["message"] if found is not None else None


@pytest.mark.virtual_time("waits for a minute, which an agent has to take a step")
async def test_step_and_bundle_say_that_no_agent_serves_the_shard_once_over_restarts(world: World) -> None:
    controller = await start_controller(world)
    await world.apply(pipeline(REPOSITORY, provider="git", environments=[environment(DEV, shard="eu")]))
    await world.apply(bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, STEP, lambda _: True)
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


class Unserved:
    """The reconciler beside a step that waits for the agent of shard `eu`, and an agent that serves `europe`."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self._stored = StoredObjects(self.clock)
        manager = Manager(self._stored, clock=self.clock, name="in-memory")
        steps = manager.informer(PROMOTION_STEP)
        pipelines = manager.informer(PIPELINE)
        self._stored.caches = {PROMOTION_STEP: steps, PIPELINE: pipelines}
        self._reconciler = UnservedReconciler(
            steps, pipelines, status=manager.status, recorder=manager.recorder, clock=self.clock
        )
        served = {"conditions": [{"type": "RepositoryReady-europe", "status": "True"}]}
        self._stored.put(PIPELINE, {**pipeline(REPOSITORY), "status": served})

    async def after(self, duration: timedelta, shard: str, **status: Any) -> JsonObject:
        """Return the step that has this status for so long."""
        step = step_of("app-1", "dev", shard=shard)
        name = step["metadata"]["name"]
        self._stored.put(PROMOTION_STEP, {**step, "status": status})
        await self._reconciler.reconcile(Key(TEAM, name))
        self.clock.skip(duration)
        await self._reconciler.reconcile(Key(TEAM, name))
        return await self._stored.get(PROMOTION_STEP, name, TEAM)


async def test_a_step_that_an_agent_has_taken_says_nothing() -> None:
    found = await Unserved().after(timedelta(minutes=10), "eu", state="WaitingForMerge", message="waits")
    assert found["status"] == {"state": "WaitingForMerge", "message": "waits"}


async def test_a_shard_that_is_nearly_the_name_of_one_that_is_served_is_told_which() -> None:
    step = await Unserved().after(timedelta(minutes=1), "eurpe")
    assert str(says(step)).endswith("in Pipeline my-app (did you mean europe?)")
    assert says(await Unserved().after(timedelta(seconds=59), "eurpe")) is None


async def test_a_step_that_an_agent_has_taken_loses_a_condition_that_was_left_on_it() -> None:
    """An agent of another version writes a state and keeps the conditions that it does not know."""
    unserved = Unserved()
    left = (await unserved.after(timedelta(minutes=1), "eu"))["status"]["conditions"]
    other = {"type": "Held", "status": "False"}
    found = await unserved.after(timedelta(), "eu", state="Promoting", conditions=[*left, other])
    assert found["status"]["conditions"] == [other]
