"""`onHealthFailure`: a change that has landed and Failed stops its Bundle, or is rolled back, once."""

from __future__ import annotations

from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api.names import rollback_name
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from tests.bundles.in_memory import BundleController
from tests.bundles.reading import REPOSITORY, patch, phase, states
from tests.bundles.rollbacks import identity, rollback
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, EU, PROD, STAGING, US
from tests.support.objects import bundle, environment, pipeline
from tests.support.world import World


async def reverts(bundles: BundleController) -> JsonObject:
    """Return a Bundle that was Verified in dev and prod, where a failure is rolled back."""
    prod = environment(PROD, onHealthFailure="rollback")
    await bundles.apply(pipeline(REPOSITORY, environments=[DEV, prod]), bundle("app-1", tag="1.0.0"))
    await bundles.verify("app-1", DEV, PROD)
    return bundles.get("app-1")


async def lands_and_fails(bundles: BundleController, name: str, environment: str) -> None:
    await bundles.land(name, environment)
    await bundles.fail(name, environment, "unhealthy")
    assert bundles.phase(name) == "Failed"


async def fails(world: World, agent: ScriptedAgent, name: str, environment: str, **status: Any) -> JsonObject:
    """Let a Bundle land in an environment and fail there."""
    await agent.land(f"{name}-{environment}")
    await agent.step(f"{name}-{environment}", state="Failed", message="unhealthy", **status)
    failed = await world.wait_for(BUNDLE, name, phase("Failed"))
    await world.settle()
    return failed


async def rollbacks(world: World) -> list[JsonObject]:
    return [each for each in await world.objects(BUNDLE) if "rollback" in each["spec"].get("intent", {})]


async def test_a_failure_is_rolled_back_once(world: World, controller: ControlPlane, agent: ScriptedAgent) -> None:
    prod = environment(PROD, onHealthFailure="rollback")
    await world.apply(pipeline(REPOSITORY, environments=[DEV, prod]), bundle("app-1", tag="1.0.0"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{PROD}")
    reverting = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
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


async def test_nothing_follows_before_a_change_has_landed(alone: BundleController) -> None:
    await reverts(alone)
    await alone.apply(bundle("app-2", tag="2.0.0"))
    await alone.verify("app-2", DEV)
    await alone.fail("app-2", PROD, "conflict")
    assert alone.phases() == {"app-1": "Verified", "app-2": "Failed"}


async def test_nothing_follows_without_a_version_to_go_back_to(alone: BundleController) -> None:
    await alone.apply(pipeline(REPOSITORY, environments=[environment(DEV, onHealthFailure="rollback")]))
    await alone.apply(bundle("app-1"))
    await lands_and_fails(alone, "app-1", DEV)
    assert alone.phases() == {"app-1": "Failed"}


async def test_a_rollback_that_fails_is_not_rolled_back(alone: BundleController) -> None:
    await reverts(alone)
    for name, tag in (("app-2", "2.0.0"), ("app-3", "3.0.0")):
        await alone.apply(bundle(name, tag=tag))
        await alone.verify(name, DEV, PROD)
    await alone.apply(rollback("back", PROD, of=alone.get("app-3"), restores=alone.get("app-2")))
    await lands_and_fails(alone, "back", PROD)
    assert alone.phases() == {"app-1": "Verified", "app-2": "Verified", "app-3": "Verified", "back": "Failed"}


async def test_a_rollback_that_was_made_before_the_process_died_is_found(alone: BundleController) -> None:
    before = await reverts(alone)
    await alone.apply(bundle("app-2", tag="2.0.0"))
    await alone.verify("app-2", DEV)
    after = alone.get("app-2")
    name = rollback_name("app-2", PROD, after["metadata"]["uid"])
    await alone.land("app-2", PROD)
    await alone.apply(rollback(name, PROD, of=after, restores=before))
    await alone.fail("app-2", PROD, "unhealthy")
    assert set(alone.phases()) == {"app-1", "app-2", name}
    entry = alone.entry("app-2", PROD)
    assert (entry["state"], entry["rolledBackBy"]) == ("Failed", name)


async def test_rolled_back_bundle_is_tried_again_only_on_request(alone: BundleController) -> None:
    await reverts(alone)
    await alone.apply(bundle("app-2", tag="2.0.0"))
    await alone.verify("app-2", DEV)
    await lands_and_fails(alone, "app-2", PROD)
    await alone.verify(alone.entry("app-2", PROD)["rolledBackBy"], PROD)
    await alone.apply(bundle("app-3", tag="2.0.0"))
    await alone.verify("app-3", DEV)
    await alone.prepare("app-3", PROD)
    entry = alone.entry("app-3", PROD)
    why = "stopped because Bundle app-2 was rolled back here with the same artifacts"
    assert (entry["stopped"], "admittedAt" in entry) == (why, False)
    await alone.fail("app-3", PROD, why)
    assert alone.phase("app-3") == "Failed"
    await alone.ask("app-3", {"id": "anyway", "action": "retry", "environment": PROD})
    entry = alone.entry("app-3", PROD)
    assert (entry["attempt"], "stopped" in entry, "admittedAt" in entry) == (2, False, True)


async def promoted_everywhere(bundles: BundleController, *prod: str) -> None:
    """Let app-1 be Verified in dev, staging and, where it is named, in prod, whose failure is taken back everywhere."""
    last = environment(PROD, onHealthFailure="rollback-all")
    await bundles.apply(pipeline(REPOSITORY, environments=[DEV, STAGING, last]), bundle("app-1", tag="1.0.0"))
    await bundles.verify("app-1", DEV, STAGING, *prod)
    await bundles.apply(bundle("app-2", tag="2.0.0"))
    await bundles.verify("app-2", DEV, STAGING)


def rolled_back(bundles: BundleController, name: str) -> set[str]:
    """Return the environments in which a Bundle was rolled back, each by a Bundle of its own."""
    entries = bundles.get(name)["status"]["environments"]
    found = {where: entry["rolledBackBy"] for where, entry in entries.items() if "rolledBackBy" in entry}
    for where, back in found.items():
        assert bundles.get(back)["spec"]["intent"]["rollback"]["environments"] == [where]
    return set(found)


async def test_a_failure_is_rolled_back_in_every_environment_that_received_the_bundle(alone: BundleController) -> None:
    await promoted_everywhere(alone, PROD)
    await lands_and_fails(alone, "app-2", PROD)
    assert rolled_back(alone, "app-2") == {DEV, STAGING, PROD}
    assert len(alone.phases()) == 5
    await alone.verify(alone.entry("app-2", DEV)["rolledBackBy"], DEV)
    assert alone.entry("app-2", DEV)["state"] == "Verified"
    await alone.apply(bundle("app-3", tag="2.0.0"))
    await alone.prepare("app-3", DEV)
    assert "app-2 was rolled back" in alone.entry("app-3", DEV)["stopped"]


async def test_environments_before_a_first_promotion_are_rolled_back(alone: BundleController) -> None:
    await promoted_everywhere(alone)
    await lands_and_fails(alone, "app-2", PROD)
    assert rolled_back(alone, "app-2") == {DEV, STAGING}


async def test_environment_that_another_bundle_runs_is_not_rolled_back(alone: BundleController) -> None:
    await promoted_everywhere(alone, PROD)
    await alone.land("app-2", PROD)
    await alone.apply(bundle("app-3", tag="3.0.0"))
    await alone.verify("app-3", DEV)
    await alone.fail("app-2", PROD, "unhealthy")
    assert rolled_back(alone, "app-2") == {STAGING, PROD}


async def test_environment_that_fails_before_a_landing_takes_nothing_back(alone: BundleController) -> None:
    await promoted_everywhere(alone, PROD)
    await alone.fail("app-2", PROD, "conflict")
    assert rolled_back(alone, "app-2") == set()


async def test_abort_stops_a_bundle_where_it_has_not_landed(alone: BundleController) -> None:
    fan_out: list[str | dict[str, Any]] = [
        DEV,
        environment(EU, dependsOn=[DEV], onHealthFailure="abort"),
        environment(US, dependsOn=[DEV]),
        environment(PROD, dependsOn=[US]),
    ]
    await alone.apply(pipeline(REPOSITORY, environments=fan_out), bundle("app-1"))
    await alone.verify("app-1", DEV)
    await alone.step("app-1", US, state="WaitingForMerge")
    await lands_and_fails(alone, "app-1", EU)
    entries = alone.get("app-1")["status"]["environments"]
    assert {name: entry.get("stopped") for name, entry in entries.items()} == {
        DEV: None,
        EU: None,
        US: f"stopped because {EU} failed",
        PROD: f"stopped because {EU} failed",
    }
    assert (entries[PROD]["state"], entries[US]["state"]) == ("Failed", "WaitingForMerge")
    ready = alone.get("app-1")["status"]["conditions"][0]["message"]
    assert ready.endswith(f"to try again: kardinal retry app-1 --env {EU}")
    await alone.fail("app-1", US, f"stopped because {EU} failed")
    await alone.ask("app-1", {"id": "one", "action": "retry", "environment": US})
    assert "stopped" not in alone.entry("app-1", US)
    assert alone.entry("app-1", US)["attempt"] == 2
