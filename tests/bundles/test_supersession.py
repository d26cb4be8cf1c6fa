"""Newer Bundles take the place of older ones."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from tests.bundles.in_memory import BundleController
from tests.bundles.reading import REPOSITORY, condition, gone, phase, states
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, EU, PROD, STAGING, US
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
    world: World, running: ControlPlane, agent: ScriptedAgent
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


@pytest.mark.virtual_time("a head start of a second, which is not to end between two creations")
async def test_newest_bundle_alone_is_promoted_from_a_backlog(world: World, agent: ScriptedAgent) -> None:
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
    for name in ("app-9", "app-6", "app-8", "app-7"):
        await world.apply(bundle(name))
    await world.wait_for(BUNDLE, "app-7", phase("Promoting"))
    for name in ("app-9", "app-6", "app-8"):
        await world.wait_for(BUNDLE, name, phase("Superseded"))
    assert {graph["metadata"]["name"] for graph in await world.objects(GRAPH)} == {"app-1", "app-7"}
    await agent.prepare(f"app-7-{DEV}")
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))


async def test_a_soak_ends_where_a_newer_bundle_lands(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    # Longer than a busy machine takes from one landing to the other on a real server.
    soak = gate("soak", "bundle.upstreamSoakMinutes >= 0.25", recheckInterval="1s")
    await world.apply(pipeline(REPOSITORY, environments=[DEV, PROD]), soak, bundle("app-1"))
    await agent.verify(f"app-1-{DEV}")
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-2", intent={"target": DEV}))
    await agent.verify(f"app-2-{DEV}")
    assert "replacedAt" in await entry(world, "app-1", DEV)
    await world.idle(timedelta(seconds=20))
    assert await world.find(PROMOTION_STEP, f"app-1-{PROD}") is None


async def test_bundles_that_come_faster_than_edits_are_made_do_not_get_a_graph_each(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    await bundles.apply(*(bundle(f"app-{number}") for number in range(2, 12)))
    assert bundles.phases() == {
        "app-1": "Promoting",
        "app-11": "Promoting",
        **{f"app-{number}": "Superseded" for number in range(2, 11)},
    }
    assert {graph["metadata"]["name"] for graph in bundles.caches.graphs.list()} == {"app-1", "app-11"}


async def test_first_and_last_of_bundles_created_at_once_start(bundles: BundleController) -> None:
    for name in ("app-3", "app-5", "app-1", "app-4", "app-2"):
        await bundles.apply(bundle(name))
    assert bundles.phase("app-2") == "Promoting"
    await bundles.prepare("app-2", DEV)
    found = bundles.phases()
    assert found.pop("app-2") == "Promoting"
    assert set(found.values()) == {"Superseded"}


async def test_a_bundle_that_stops_before_prod_leaves_the_review_there_alone(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    await bundles.verify("app-1", DEV, STAGING)
    await bundles.step("app-1", PROD, state="WaitingForMerge")
    await bundles.apply(bundle("app-2", intent={"target": DEV}))
    await bundles.prepare("app-2", DEV)
    await bundles.verify("app-2", DEV)
    assert bundles.phase("app-2") == "Verified"
    assert bundles.entry("app-1", PROD)["state"] == "WaitingForMerge"
    assert "displacedBy" not in bundles.entry("app-1", PROD)
    await bundles.verify("app-1", PROD)
    assert bundles.phase("app-1") == "Verified"


async def test_environment_not_started_is_superseded_once_all_upstreams_landed(bundles: BundleController) -> None:
    await bundles.apply(gate("closed", "false", applies_to=PROD), bundle("app-1"))
    await bundles.verify("app-1", DEV, STAGING)
    await bundles.live(timedelta(minutes=1))
    await bundles.apply(bundle("app-2"))
    await bundles.verify("app-2", DEV)
    assert bundles.entry("app-1", PROD)["state"] == "Pending"
    assert "replacedAt" in bundles.entry("app-1", DEV)
    await bundles.land("app-2", STAGING)
    assert bundles.phase("app-1") == "Superseded"
    assert bundles.entry("app-1", PROD)["displacedBy"] == "app-2"


async def test_landed_bundle_finishes_without_delaying_a_newer_one(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    await bundles.land("app-1", DEV)
    await bundles.apply(bundle("app-2"))
    await bundles.prepare("app-2", DEV)
    assert "admittedAt" in bundles.entry("app-2", DEV)
    assert "displacedBy" not in bundles.entry("app-1", DEV)
    await bundles.land("app-2", DEV)
    assert bundles.phase("app-1") == "Superseded"
    await bundles.verify("app-1", DEV)
    assert bundles.entry("app-1", DEV)["state"] == "Verified"


async def test_a_newer_bundle_whose_edit_is_no_good_takes_over_nothing(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    await bundles.step("app-1", DEV, state="WaitingForMerge")
    await bundles.apply(bundle("app-2"))
    await bundles.fail("app-2", DEV, "NoEffect")
    assert bundles.phases() == {"app-1": "Promoting", "app-2": "Failed"}
    assert "displacedBy" not in bundles.entry("app-1", DEV)


async def test_a_pinned_bundle_holds_its_environments_until_its_pin_is_removed(bundles: BundleController) -> None:
    pinned = bundle("app-1")
    pinned["metadata"]["annotations"] = {"kardinal.io/pin": "true"}
    await bundles.apply(pinned)
    await bundles.step("app-1", DEV, state="WaitingForMerge")
    await bundles.apply(bundle("app-2"))
    await bundles.prepare("app-2", DEV)
    held = bundles.entry("app-2", DEV)
    assert ("admittedAt" in held, held["message"]) == (False, "waits for Bundle app-1")
    assert "displacedBy" not in bundles.entry("app-1", DEV)
    pinned["metadata"]["annotations"] = {"kardinal.io/pin": "false"}
    await bundles.apply(pinned)
    assert bundles.phase("app-1") == "Superseded"


async def test_a_bundle_that_is_deleted_lets_the_next_one_in(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    await bundles.step("app-1", DEV, state="Promoting")
    await bundles.apply(bundle("app-2"))
    assert "admittedAt" not in bundles.entry("app-2", DEV)
    await bundles.delete(BUNDLE, "app-1")
    assert "admittedAt" in bundles.entry("app-2", DEV)


async def test_bundles_of_other_pipelines_and_finished_ones_are_left_alone(bundles: BundleController) -> None:
    await bundles.apply(pipeline(REPOSITORY, name="other"), bundle("other-1", pipeline="other"))
    await bundles.apply(bundle("app-1", intent={"target": DEV}))
    await bundles.verify("app-1", DEV)
    await bundles.apply(bundle("app-2"))
    assert bundles.phases() == {"app-1": "Verified", "app-2": "Promoting", "other-1": "Promoting"}


async def test_a_newer_bundle_that_cannot_start_ends_nothing(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    await bundles.apply(bundle("app-2", intent={"target": "nowhere"}))
    assert bundles.phases() == {"app-1": "Promoting", "app-2": "Failed"}


async def test_a_failed_bundle_is_not_superseded(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    await bundles.fail("app-1", DEV)
    await bundles.apply(bundle("app-2"))
    await bundles.live(timedelta(minutes=1))
    assert bundles.phases() == {"app-1": "Failed", "app-2": "Promoting"}
    assert bundles.stored(GRAPH, "app-1") is not None


async def test_a_failed_bundle_with_a_step_on_its_way_is_superseded(alone: BundleController) -> None:
    await alone.apply(pipeline(REPOSITORY, environments=[EU, environment(US, dependsOn=[])]), bundle("app-1"))
    await alone.fail("app-1", EU)
    await alone.step("app-1", US, state="WaitingForMerge")
    assert alone.phase("app-1") == "Failed"
    await alone.apply(bundle("app-2"))
    await alone.prepare("app-2", US)
    assert alone.phase("app-1") == "Superseded"


async def test_a_superseded_bundle_stays_superseded_when_its_successor_is_deleted(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1", intent={"target": "nowhere"}))
    assert bundles.phase("app-1") == "Failed"
    await bundles.apply(bundle("app-2"))
    assert bundles.phase("app-1") == "Superseded"
    await bundles.delete(BUNDLE, "app-2")
    await bundles.patch("app-1", {"spec": {"intent": {"target": DEV}}})
    await bundles.apply(pipeline(REPOSITORY, environments=[DEV]))
    await bundles.live(timedelta(minutes=1))
    assert bundles.phase("app-1") == "Superseded"
    assert bundles.stored(GRAPH, "app-1") is None


async def test_queued_bundle_enters_when_the_one_before_it_has_left(alone: BundleController) -> None:
    await alone.apply(pipeline(REPOSITORY, environments=[DEV, PROD], promotionPolicy="queue"))
    for name in ("app-1", "app-2", "app-3"):
        await alone.apply(bundle(name))
    await alone.land("app-1", DEV)
    await alone.prepare("app-2", DEV)
    await alone.prepare("app-3", DEV)
    assert alone.entry("app-2", DEV)["message"] == "waits for Bundle app-1"
    await alone.fail("app-1", DEV)
    assert "admittedAt" in alone.entry("app-2", DEV)
    assert alone.entry("app-3", DEV)["message"] == "waits for Bundle app-2"
    await alone.verify("app-2", DEV)
    assert "admittedAt" in alone.entry("app-3", DEV)
    await alone.verify("app-2", PROD)
    assert alone.phases() == {"app-1": "Failed", "app-2": "Verified", "app-3": "Promoting"}
