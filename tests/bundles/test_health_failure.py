"""`onHealthFailure`: a change that has landed and Failed stops its Bundle, or is rolled back, once."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.api import BUNDLE, PROMOTION_STEP
from kardinal.api.names import rollback_name
from kardinal.objects import JsonObject
from kardinal_controller.program import Controller
from tests.bundles.reading import REPOSITORY, patch, phase, states
from tests.bundles.rollbacks import identity, rollback
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, EU, PROD, US
from tests.support.objects import bundle, environment, pipeline
from tests.support.world import World


@pytest.fixture
async def reverting(world: World, controller: Controller, agent: ScriptedAgent) -> JsonObject:
    """Return a Bundle that was Verified in dev and prod, where a failure is rolled back."""
    prod = environment(PROD, onHealthFailure="rollback")
    await world.apply(pipeline(REPOSITORY, environments=[DEV, prod]), bundle("app-1", tag="1.0.0"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{PROD}")
    return await world.wait_for(BUNDLE, "app-1", phase("Verified"))


async def fails(world: World, agent: ScriptedAgent, name: str, environment: str, **status: Any) -> JsonObject:
    """Let a Bundle land in an environment and fail there."""
    await agent.land(f"{name}-{environment}")
    await agent.step(f"{name}-{environment}", state="Failed", message="unhealthy", **status)
    failed = await world.wait_for(BUNDLE, name, phase("Failed"))
    await world.settle()
    return failed


async def rollbacks(world: World) -> list[JsonObject]:
    return [each for each in await world.objects(BUNDLE) if "rollback" in each["spec"].get("intent", {})]


async def test_a_failure_is_rolled_back_once(world: World, reverting: JsonObject, agent: ScriptedAgent) -> None:
    await world.apply(bundle("app-2", tag="2.0.0"))
    await agent.verify(f"app-2-{DEV}")
    failed = await fails(world, agent, "app-2", PROD)
    (made,) = await rollbacks(world)
    assert made["spec"]["artifacts"] == {"charts": [], **reverting["spec"]["artifacts"]}
    assert made["spec"]["intent"]["rollback"] == {
        "environments": [PROD],
        "of": identity(failed),
        "restores": identity(reverting),
        "emergency": False,
    }
    name = made["metadata"]["name"]
    found = await world.get(BUNDLE, "app-2")
    assert found["status"]["environments"][PROD]["rolledBackBy"] == name
    assert f"; Bundle {name} rolls {PROD} back; to try again: " in found["status"]["conditions"][0]["message"]
    (event,) = await world.events("RollingBack")
    assert event["note"] == f"{PROD} failed, and Bundle {name} rolls it back"
    await agent.verify(f"{name}-{PROD}")
    assert states(await world.wait_for(BUNDLE, name, phase("Verified"))) == {PROD: "Verified"}

    await world.delete(BUNDLE, name)
    request = {"id": "again", "action": "retry", "environment": PROD}
    await patch(world, "app-2", {"spec": {"intent": {"requests": [request]}}})
    await world.wait_for(PROMOTION_STEP, f"app-2-{PROD}", lambda step: step["spec"].get("attempt") == 2)
    await fails(world, agent, "app-2", PROD, attempt=2)
    assert await rollbacks(world) == []


async def test_nothing_follows_before_a_change_has_landed(
    world: World, reverting: JsonObject, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-2", tag="2.0.0"))
    await agent.verify(f"app-2-{DEV}")
    await agent.step(f"app-2-{PROD}", state="Failed", message="conflict")
    await world.wait_for(BUNDLE, "app-2", phase("Failed"))
    await world.settle()
    assert await rollbacks(world) == []


async def test_nothing_follows_without_a_version_to_go_back_to(
    world: World, controller: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[environment(DEV, onHealthFailure="rollback")]))
    await world.apply(bundle("app-1"))
    await fails(world, agent, "app-1", DEV)
    assert await rollbacks(world) == []


async def test_a_rollback_that_fails_is_not_rolled_back(
    world: World, reverting: JsonObject, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-2", tag="2.0.0"))
    await agent.verify(f"app-2-{DEV}", f"app-2-{PROD}")
    after = await world.wait_for(BUNDLE, "app-2", phase("Verified"))
    await world.apply(bundle("app-3", tag="3.0.0"))
    await agent.verify(f"app-3-{DEV}", f"app-3-{PROD}")
    await world.wait_for(BUNDLE, "app-3", phase("Verified"))
    await world.apply(rollback("back", PROD, of=await world.get(BUNDLE, "app-3"), restores=after))
    await fails(world, agent, "back", PROD)
    assert [each["metadata"]["name"] for each in await rollbacks(world)] == ["back"]


async def test_a_rollback_that_was_made_before_the_process_died_is_found(
    world: World, reverting: JsonObject, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-2", tag="2.0.0"))
    await agent.verify(f"app-2-{DEV}")
    after = await world.get(BUNDLE, "app-2")
    name = rollback_name("app-2", PROD, after["metadata"]["uid"])
    await agent.land(f"app-2-{PROD}")
    await world.apply(rollback(name, PROD, of=after, restores=reverting))
    await world.settle()
    await agent.step(f"app-2-{PROD}", state="Failed", message="unhealthy")
    failed = await world.wait_for(BUNDLE, "app-2", phase("Failed"))
    await world.settle()
    assert [each["metadata"]["name"] for each in await rollbacks(world)] == [name]
    assert failed["status"]["environments"][PROD]["state"] == "Failed"


async def test_what_was_rolled_back_is_not_tried_again_unless_a_person_says_so(
    world: World, reverting: JsonObject, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-2", tag="2.0.0"))
    await agent.verify(f"app-2-{DEV}")
    await fails(world, agent, "app-2", PROD)
    (made,) = await rollbacks(world)
    await agent.verify(f"{made['metadata']['name']}-{PROD}")
    await world.apply(bundle("app-3", tag="2.0.0"))
    await agent.verify(f"app-3-{DEV}")
    await agent.prepare(f"app-3-{PROD}")
    await world.settle()
    entry = (await world.get(BUNDLE, "app-3"))["status"]["environments"][PROD]
    why = "stopped because Bundle app-2 has failed here with the same artifacts and was rolled back"
    assert (entry["stopped"], "admittedAt" in entry) == (why, False)
    await agent.step(f"app-3-{PROD}", state="Failed", message=why)
    await world.wait_for(BUNDLE, "app-3", phase("Failed"))
    request = {"id": "anyway", "action": "retry", "environment": PROD}
    await patch(world, "app-3", {"spec": {"intent": {"requests": [request]}}})
    await world.wait_for(PROMOTION_STEP, f"app-3-{PROD}", lambda step: step["spec"].get("attempt") == 2)
    await world.settle()
    entry = (await world.get(BUNDLE, "app-3"))["status"]["environments"][PROD]
    assert ("stopped" in entry, "admittedAt" in entry) == (False, True)


async def test_abort_stops_a_bundle_where_it_has_not_landed(
    world: World, controller: Controller, agent: ScriptedAgent
) -> None:
    fan_out: list[str | dict[str, Any]] = [
        DEV,
        environment(EU, dependsOn=[DEV], onHealthFailure="abort"),
        environment(US, dependsOn=[DEV]),
        environment(PROD, dependsOn=[US]),
    ]
    await world.apply(pipeline(REPOSITORY, environments=fan_out), bundle("app-1"))
    await agent.verify(f"app-1-{DEV}")
    await agent.step(f"app-1-{US}", state="WaitingForMerge")
    await fails(world, agent, "app-1", EU)
    entries = (await world.get(BUNDLE, "app-1"))["status"]["environments"]
    assert {name: entry.get("stopped") for name, entry in entries.items()} == {
        DEV: None,
        EU: None,
        US: f"stopped because {EU} failed",
        PROD: f"stopped because {EU} failed",
    }
    assert (entries[PROD]["state"], entries[US]["state"]) == ("Failed", "WaitingForMerge")
    ready = (await world.get(BUNDLE, "app-1"))["status"]["conditions"][0]["message"]
    assert ready.endswith(f"to try again: kardinal retry app-1 --env {EU}")
    await agent.step(f"app-1-{US}", state="Failed", message=f"stopped because {EU} failed")
    request = {"id": "one", "action": "retry", "environment": US}
    await patch(world, "app-1", {"spec": {"intent": {"requests": [request]}}})
    await world.wait_for(PROMOTION_STEP, f"app-1-{US}", lambda step: step["spec"].get("attempt") == 2)
    await world.settle()
    assert "stopped" not in (await world.get(BUNDLE, "app-1"))["status"]["environments"][US]
