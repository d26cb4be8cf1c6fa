"""Newer Bundles take the place of older ones."""

from __future__ import annotations

from datetime import timedelta

from kardinal.api import BUNDLE, PROMOTION_STEP
from kardinal.objects import GRAPH
from kardinal_controller.program import Controller
from tests.bundles.reading import REPOSITORY, condition, gone, phase, states
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, EU, PROD, STAGING, TEAM, US
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.world import World


async def test_a_newer_bundle_supersedes_a_promoting_one_whose_graph_is_deleted_when_its_steps_have_finished(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}")
    await agent.step(f"app-1-{STAGING}", state="HealthChecking", commit="abc", promotedAt="2026-03-03T10:00:00Z")
    await world.apply(bundle("app-2"))
    old = await world.wait_for(BUNDLE, "app-1", phase("Superseded"))
    ready = condition(old)
    assert ready is not None
    assert (ready["status"], ready["message"]) == ("False", "Bundle app-2 is newer")
    await world.idle(timedelta(minutes=5))
    assert await world.find(GRAPH, "app-1") is not None
    await agent.verify(f"app-1-{STAGING}")
    # The engine may already have started what the agent then abandons.
    await world.live(timedelta(seconds=2))
    if await world.find(PROMOTION_STEP, f"app-1-{PROD}") is not None:
        await agent.step(f"app-1-{PROD}", state="Failed", message="superseded")
    await world.until(lambda: gone(world, GRAPH, "app-1"))
    await world.live(timedelta(seconds=2))
    ended = await world.get(BUNDLE, "app-1")
    assert ended["status"]["phase"] == "Superseded"
    assert states(ended)[STAGING] == "Verified"
    assert (await world.get(BUNDLE, "app-2"))["status"]["phase"] == "Promoting"
    assert [step["metadata"]["name"] for step in await world.objects(PROMOTION_STEP)] == [f"app-2-{DEV}"]


async def test_a_pinned_bundle_is_not_superseded(world: World, running: Controller) -> None:
    pinned = bundle("app-1")
    pinned["metadata"]["annotations"] = {"kardinal.io/pin": "true"}
    await world.apply(pinned)
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.apply(bundle("app-2"))
    await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
    await world.settle()
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Promoting"


async def test_bundles_of_other_pipelines_and_finished_ones_are_left_alone(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, name="other"), bundle("other-1", pipeline="other"))
    await world.apply(bundle("app-1", intent={"target": DEV}))
    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.apply(bundle("app-2"))
    await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
    await world.settle()
    found = {obj["metadata"]["name"]: obj["status"]["phase"] for obj in await world.objects(BUNDLE)}
    assert found == {"app-1": "Verified", "app-2": "Promoting", "other-1": "Promoting"}


async def test_a_newer_bundle_that_cannot_start_ends_nothing(world: World, running: Controller) -> None:
    await world.apply(bundle("app-1"))
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.apply(bundle("app-2", intent={"target": "nowhere"}))
    await world.wait_for(BUNDLE, "app-2", phase("Failed"))
    await world.settle()
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Promoting"


async def test_of_a_backlog_only_the_newest_is_promoted(world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    # Created within one second, in an order that their names do not tell.
    for name in ("app-5", "app-3", "app-4", "app-1"):
        await world.apply(bundle(name))
    await start_controller(world, standalone=False)
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.settle()
    found = {obj["metadata"]["name"]: obj["status"]["phase"] for obj in await world.objects(BUNDLE)}
    assert found == {"app-1": "Promoting", "app-3": "Superseded", "app-4": "Superseded", "app-5": "Superseded"}
    assert [graph["metadata"]["name"] for graph in await world.objects(GRAPH)] == ["app-1"]


async def test_a_failed_bundle_is_not_superseded(world: World, running: Controller, agent: ScriptedAgent) -> None:
    await world.apply(bundle("app-1"))
    await agent.step(f"app-1-{DEV}", state="Failed", message="broken")
    await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    await world.apply(bundle("app-2"))
    await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
    await world.idle(timedelta(minutes=1))
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Failed"
    assert await world.find(GRAPH, "app-1") is not None


async def test_a_failed_bundle_with_a_step_on_its_way_is_superseded(
    world: World, controller: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[EU, environment(US, dependsOn=[])]), bundle("app-1"))
    await agent.step(f"app-1-{EU}", state="Failed", message="broken")
    await agent.step(f"app-1-{US}", state="WaitingForMerge")
    await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    await world.apply(bundle("app-2"))
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))


async def test_of_bundles_created_at_once_only_the_last_is_promoted(world: World, running: Controller) -> None:
    for name in ("app-3", "app-5", "app-1", "app-4", "app-2"):
        await world.apply(bundle(name))
    await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
    await world.settle()
    found = {obj["metadata"]["name"]: obj["status"]["phase"] for obj in await world.objects(BUNDLE)}
    assert found.pop("app-2") == "Promoting"
    assert set(found.values()) == {"Superseded"}


async def test_a_superseded_bundle_stays_superseded_when_its_successor_is_deleted(
    world: World, running: Controller
) -> None:
    await world.apply(bundle("app-1", intent={"target": "nowhere"}))
    await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    await world.apply(bundle("app-2"))
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))
    await world.delete(BUNDLE, "app-2")
    await world.client.patch(BUNDLE, "app-1", TEAM, {"spec": {"intent": {"target": DEV}}})
    await world.apply(pipeline(REPOSITORY, environments=[DEV]))
    await world.idle(timedelta(minutes=1))
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Superseded"
    assert await world.find(GRAPH, "app-1") is None


async def test_a_bundle_is_superseded_when_its_pin_is_removed(world: World, running: Controller) -> None:
    pinned = bundle("app-1")
    pinned["metadata"]["annotations"] = {"kardinal.io/pin": "true"}
    await world.apply(pinned, bundle("app-2"))
    await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
    pinned["metadata"]["annotations"] = {"kardinal.io/pin": "false"}
    await world.apply(pinned)
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))
