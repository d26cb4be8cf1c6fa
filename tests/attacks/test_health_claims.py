"""Claims about the health of what is Verified, by clocks that are wrong and by steps that no Graph made."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent
from tests.attacks.test_ownership import handmade_step
from tests.bundles.scripted_agent import ScriptedAgent, agent, controller
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["agent", "controller"]

LONG_AGO = "2020-01-01T00:00:00Z"
SOAK = gate("soak", "bundle.upstreamSoakMinutes >= 30", namespace=POLICIES)


async def closed(world: World) -> str:
    """Return why the gate before prod is closed, once it is."""
    name = f"app-1-{PROD}-soak"
    found = await world.wait_for(POLICY_GATE, name, lambda obj: obj.get("status", {}).get("ready") is False)
    return str(found["status"]["reason"])


@pytest.mark.parametrize(
    "claim",
    [
        {"healthy": True, "healthySince": LONG_AGO},
        {"healthy": True, "healthySince": "2999-01-01T00:00:00Z", "healthyFor": "9000h"},
        {"healthy": True, "healthySince": LONG_AGO, "verifiedAt": LONG_AGO},
    ],
    ids=["clock-behind", "clock-ahead", "verified-before-it-was-made"],
)
async def test_no_soak_is_longer_than_its_step_is_old(
    world: World, controller: ControlPlane, agent: ScriptedAgent, claim: JsonObject
) -> None:
    await world.apply(pipeline("file:///repo"), SOAK)
    await world.settle()
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}")
    await agent.step(f"app-1-{STAGING}", **{"state": "Verified", "verifiedAt": "2026-03-03T10:00:00Z", **claim})
    assert (await closed(world)).startswith("bundle.upstreamSoakMinutes = 0")
    await world.live(timedelta(seconds=2))
    assert await world.find(PROMOTION_STEP, f"app-1-{PROD}") is None


async def test_a_step_in_another_namespace_says_nothing_about_the_soak(
    world: World, controller: ControlPlane, agent: ScriptedAgent, repository: GitRepository
) -> None:
    await world.apply(pipeline("file:///repo"), SOAK)
    await world.settle()
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    reason = await closed(world)
    name = f"app-1-{STAGING}"
    # One that names the Graph as its owner is collected: owners are of the same namespace.
    await world.apply(handmade_step(repository, namespace=POLICIES, name=name, environment=STAGING))
    status = {"state": "Verified", "verifiedAt": LONG_AGO, "healthy": True, "healthySince": LONG_AGO}
    await world.client.patch(
        PROMOTION_STEP, name, POLICIES, {"status": status}, kind=PatchType.MERGE, subresource="status"
    )
    await world.settle()
    found = await world.get(POLICY_GATE, f"app-1-{PROD}-soak")
    assert (found["status"]["ready"], found["status"]["reason"]) == (False, reason)
    entry = (await world.get(BUNDLE, "app-1"))["status"]["environments"][STAGING]
    assert entry["healthySince"] != LONG_AGO


async def test_a_verified_step_that_no_graph_made_is_not_looked_at(world: World, repository: GitRepository) -> None:
    """It could have anybody's namespace watched, for ever."""
    runs = await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository))
    await reached(world, "Verified")
    await world.apply(handmade_step(repository, bundleRef="my-app-1"))
    claim = {"status": {"state": "Verified", "healthy": False, "verifiedAt": "2026-03-03T10:00:00Z"}}
    await world.client.patch(PROMOTION_STEP, "mine", TEAM, claim, kind=PatchType.MERGE, subresource="status")
    before = runs.manager.dynamic.informers
    await world.live(timedelta(seconds=2))
    assert [each for each in runs.manager.dynamic.informers if each not in before] == []
    assert (await world.get(PROMOTION_STEP, "mine"))["status"] == claim["status"]
