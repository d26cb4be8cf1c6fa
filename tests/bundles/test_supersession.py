"""Newer Bundles take the place of older ones."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.api import BUNDLE, PROMOTION_STEP
from kardinal.objects import GRAPH, JsonObject
from kardinal_controller.program import Controller
from tests.bundles.reading import REPOSITORY, condition, gone, phase, states
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, EU, PROD, STAGING, TEAM, US
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.world import World


async def entry(world: World, name: str, environment: str) -> JsonObject:
    """Return what a Bundle says of one environment."""
    await world.settle()
    await world.live(timedelta(seconds=2))
    found: JsonObject = (await world.get(BUNDLE, name))["status"]["environments"][environment]
    return found


async def test_a_review_is_taken_over_once_the_newer_edit_there_is_good_and_before_it_is_written(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await agent.step(f"app-1-{PROD}", state="WaitingForMerge")
    await world.apply(bundle("app-2"))
    await agent.verify(f"app-2-{DEV}", f"app-2-{STAGING}")
    assert "displacedBy" not in await entry(world, "app-1", PROD)
    assert (await entry(world, "app-2", PROD))["message"] == "waits for Bundle app-1"
    await agent.prepare(f"app-2-{PROD}")
    old = await world.wait_for(BUNDLE, "app-1", phase("Superseded"))
    ready = condition(old)
    assert ready is not None
    assert (ready["status"], ready["message"]) == (
        "False",
        f"superseded by app-2 in {PROD}; to have it all the same: kardinal promote my-app --bundle app-1 --env {PROD}",
    )
    # Its agent may be closing the review at this moment.
    assert "admittedAt" not in await entry(world, "app-2", PROD)
    assert await world.find(GRAPH, "app-1") is not None
    await agent.step(f"app-1-{PROD}", state="Failed", message="superseded by Bundle app-2")
    assert "admittedAt" in await entry(world, "app-2", PROD)
    await world.until(lambda: gone(world, GRAPH, "app-1"))
    ended = await world.get(BUNDLE, "app-1")
    assert ended["status"]["phase"] == "Superseded"
    assert states(ended) == {DEV: "Verified", STAGING: "Verified", PROD: "Superseded"}


async def test_bundles_that_come_faster_than_edits_are_made_do_not_get_a_graph_each(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    for number in range(2, 12):
        await world.apply(bundle(f"app-{number}"))
    await world.wait_for(BUNDLE, "app-11", phase("Promoting"))
    for number in range(2, 11):
        await world.wait_for(BUNDLE, f"app-{number}", phase("Superseded"))
    assert {graph["metadata"]["name"] for graph in (await world.client.list(GRAPH, TEAM)).items} == {"app-1", "app-11"}


async def test_a_bundle_that_stops_before_prod_leaves_the_review_there_alone(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await agent.step(f"app-1-{PROD}", state="WaitingForMerge")
    await world.apply(bundle("app-2", intent={"target": DEV}))
    await agent.prepare(f"app-2-{DEV}")
    await agent.verify(f"app-2-{DEV}")
    await world.wait_for(BUNDLE, "app-2", phase("Verified"))
    assert (await entry(world, "app-1", PROD))["state"] == "WaitingForMerge"
    await agent.verify(f"app-1-{PROD}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))


@pytest.mark.virtual_time("a minute in which nothing happens")
async def test_what_has_not_started_is_taken_over_by_one_that_has_landed_in_all_that_comes_before(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(gate("closed", "false", applies_to=PROD), bundle("app-1"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await world.live(timedelta(minutes=1))
    await world.apply(bundle("app-2"))
    await agent.verify(f"app-2-{DEV}")
    assert (await entry(world, "app-1", PROD))["state"] == "Pending"
    assert "replacedAt" in await entry(world, "app-1", DEV)
    await agent.land(f"app-2-{STAGING}")
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))
    assert (await entry(world, "app-1", PROD))["displacedBy"] == "app-2"


async def test_what_has_landed_finishes_and_keeps_no_newer_bundle_waiting(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.land(f"app-1-{DEV}")
    await world.apply(bundle("app-2"))
    await agent.prepare(f"app-2-{DEV}")
    assert "admittedAt" in await entry(world, "app-2", DEV)
    assert "displacedBy" not in await entry(world, "app-1", DEV)
    await agent.land(f"app-2-{DEV}")
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))
    await agent.verify(f"app-1-{DEV}")
    assert (await entry(world, "app-1", DEV))["state"] == "Verified"


async def test_a_newer_bundle_whose_edit_is_no_good_takes_over_nothing(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.step(f"app-1-{DEV}", state="WaitingForMerge")
    await world.apply(bundle("app-2"))
    await agent.step(f"app-2-{DEV}", state="Failed", message="NoEffect")
    await world.wait_for(BUNDLE, "app-2", phase("Failed"))
    assert "displacedBy" not in await entry(world, "app-1", DEV)


async def test_a_pinned_bundle_holds_its_environments_until_its_pin_is_removed(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    pinned = bundle("app-1")
    pinned["metadata"]["annotations"] = {"kardinal.io/pin": "true"}
    await world.apply(pinned)
    await agent.step(f"app-1-{DEV}", state="WaitingForMerge")
    await world.apply(bundle("app-2"))
    await agent.prepare(f"app-2-{DEV}")
    held = await entry(world, "app-2", DEV)
    assert ("admittedAt" in held, held["message"]) == (False, "waits for Bundle app-1")
    assert "displacedBy" not in await entry(world, "app-1", DEV)
    pinned["metadata"]["annotations"] = {"kardinal.io/pin": "false"}
    await world.apply(pinned)
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))


async def test_a_bundle_that_is_deleted_lets_the_next_one_in(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.step(f"app-1-{DEV}", state="Promoting")
    await world.apply(bundle("app-2"))
    assert "admittedAt" not in await entry(world, "app-2", DEV)
    await world.delete(BUNDLE, "app-1")
    assert "admittedAt" in await entry(world, "app-2", DEV)


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
    await agent.prepare(f"app-2-{US}")
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))


async def test_of_bundles_created_at_once_the_first_and_the_last_start(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    for name in ("app-3", "app-5", "app-1", "app-4", "app-2"):
        await world.apply(bundle(name))
    await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
    await agent.prepare(f"app-2-{DEV}")
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


async def test_in_a_queue_each_bundle_enters_when_the_one_before_it_has_left(
    world: World, controller: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV, PROD], promotionPolicy="queue"))
    for name in ("app-1", "app-2", "app-3"):
        await world.apply(bundle(name))
    await agent.land(f"app-1-{DEV}")
    await agent.prepare(f"app-2-{DEV}")
    await agent.prepare(f"app-3-{DEV}")
    assert (await entry(world, "app-2", DEV))["message"] == "waits for Bundle app-1"
    await agent.step(f"app-1-{DEV}", state="Failed", message="broken")
    assert "admittedAt" in await entry(world, "app-2", DEV)
    assert (await entry(world, "app-3", DEV))["message"] == "waits for Bundle app-2"
    await agent.verify(f"app-2-{DEV}")
    assert "admittedAt" in await entry(world, "app-3", DEV)
    await agent.verify(f"app-2-{PROD}")
    await world.wait_for(BUNDLE, "app-2", phase("Verified"))
    found = {obj["metadata"]["name"]: obj["status"]["phase"] for obj in await world.objects(BUNDLE)}
    assert found == {"app-1": "Failed", "app-2": "Verified", "app-3": "Promoting"}


async def test_a_soak_ends_where_a_newer_bundle_lands(
    world: World, controller: Controller, agent: ScriptedAgent
) -> None:
    soak = gate("soak", "bundle.upstreamSoakMinutes >= 0.05", recheckInterval="1s")
    await world.apply(pipeline(REPOSITORY, environments=[DEV, PROD]), soak, bundle("app-1"))
    await agent.verify(f"app-1-{DEV}")
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-2", intent={"target": DEV}))
    await agent.verify(f"app-2-{DEV}")
    assert "replacedAt" in await entry(world, "app-1", DEV)
    await world.idle(timedelta(seconds=10))
    assert await world.find(PROMOTION_STEP, f"app-1-{PROD}") is None
