"""Gates wait until the tool of their environment has applied what the branch has; the tool is written by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_controller.program import ControlPlane
from tests.health.served_tools import application, put, serve
from tests.support.names import DEV, POLICIES
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.repository import APPLICATION as APP
from tests.support.repository import GitRepository
from tests.support.reviewer import merge_pull_request
from tests.support.world import World

pytestmark = pytest.mark.local_only("the objects of a tool are written by hand")

HEALTH = {"type": "argocd", "argocd": {"name": APP, "namespace": "argocd"}, "timeout": "10m"}
GATE = f"app-2-{DEV}-drift"
ELSEWHERE = {"unrelated": "x\n"}
BESIDE = {f"environments/{DEV}/extra.yaml": "x: 1\n"}


async def synced(world: World, repository: GitRepository, *, status: str = "Synced", health: str = "Healthy") -> None:
    """Let Argo CD say that it has compared the tip of the branch."""
    found = application(repository, repository.head(), health=health)
    found["status"]["sync"]["status"] = status
    await put(world, APPLICATION, "argocd", **found)


async def until_step(world: World, name: str, state: str) -> JsonObject:
    return await world.wait_for(PROMOTION_STEP, name, lambda obj: (obj.get("status") or {}).get("state") == state)


async def until_gate(world: World, reason: str, *, ready: bool = False) -> None:
    def answered(obj: JsonObject) -> bool:
        status = obj.get("status") or {}
        return status.get("ready") is ready and reason in status.get("reason", "")

    await world.wait_for(POLICY_GATE, GATE, answered)


async def until_unknown(world: World, why: str) -> None:
    """Wait until the promotion that runs in dev says why the drift is unknown."""

    def says(obj: JsonObject) -> bool:
        drift = (obj.get("status") or {}).get("targetDrift") or {}
        return "unreconciled" not in drift and drift.get("message") == why

    await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", says)
    assert (await world.get(POLICY_GATE, GATE))["status"]["ready"] is False


async def begin(world: World, repository: GitRepository, **options: Any) -> ControlPlane:
    """Promote app-1 until it is Verified in dev, by the word of Argo CD, before a gate that reads the drift."""
    await serve(world, APPLICATION)
    await put(world, APPLICATION, "argocd", **application(repository, repository.head()))
    controller = await start_controller(world)
    drift = gate(
        "drift", "!has(previousBundle.version) || !targetDrift.unreconciled", applies_to=DEV, namespace=POLICIES
    )
    await world.apply(drift, pipeline(repository, environments=[environment(DEV, health=HEALTH, **options)]))
    await world.settle()
    await world.apply(bundle("app-1"))
    return controller


async def verify(world: World, repository: GitRepository, name: str) -> None:
    await until_step(world, f"{name}-{DEV}", "HealthChecking")
    await synced(world, repository)
    await world.wait_for(BUNDLE, name, lambda obj: obj["status"]["phase"] == "Verified")


async def test_promotion_waits_for_commits_of_others_at_its_path(world: World, repository: GitRepository) -> None:
    controller = await begin(world, repository)
    await verify(world, repository, "app-1")
    repository.commit(BESIDE)
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-2", tag="2.0.0"))
    await until_gate(world, "targetDrift.unreconciled = true")
    seen = (await world.get(PROMOTION_STEP, f"app-1-{DEV}"))["status"]["targetDrift"]
    assert seen["message"] == (
        f"Application argocd/{APP} has not applied the newest changes of environments/{DEV} on branch main"
    )
    assert len(repository.promotions(DEV)) == 1
    await synced(world, repository)
    await until_gate(world, "targetDrift.unreconciled = false", ready=True)
    await verify(world, repository, "app-2")
    await world.live(timedelta(minutes=2))
    assert "targetDrift" not in (await world.get(PROMOTION_STEP, f"app-1-{DEV}"))["status"]
    assert controller.manager.dynamic.informers == []


@pytest.mark.virtual_time("the branch is read every minute")
async def test_gate_of_an_open_proposal_follows_the_branch_and_the_tool(
    world: World, repository: GitRepository
) -> None:
    await begin(world, repository, approval="pr-review")
    await until_step(world, f"app-1-{DEV}", "WaitingForMerge")
    await merge_pull_request(world, repository, 1)
    await verify(world, repository, "app-1")
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-2", tag="2.0.0"))
    await until_step(world, f"app-2-{DEV}", "WaitingForMerge")
    await until_gate(world, "targetDrift.unreconciled = false", ready=True)
    repository.commit(ELSEWHERE)
    await world.live(timedelta(minutes=2))
    await until_gate(world, "targetDrift.unreconciled = false", ready=True)
    repository.commit(BESIDE)
    await world.live(timedelta(minutes=2))
    await until_gate(world, "targetDrift.unreconciled = true")
    await synced(world, repository)
    await until_gate(world, "targetDrift.unreconciled = false", ready=True)
    await synced(world, repository, status="OutOfSync")
    await until_gate(world, "targetDrift.unreconciled = true")
    await synced(world, repository, status="Unknown")
    await until_unknown(world, f"the sync status of Application argocd/{APP} is Unknown")
    await put(world, APPLICATION, "argocd", **application(repository, "f" * 40))
    await until_unknown(world, f"Application argocd/{APP} has applied a revision that is not on branch main")
    await synced(world, repository)
    await until_gate(world, "targetDrift.unreconciled = false", ready=True)
    await merge_pull_request(world, repository, 2)
    await verify(world, repository, "app-2")


async def test_correction_of_a_failed_landing_can_pass(world: World, repository: GitRepository) -> None:
    await begin(world, repository)
    await verify(world, repository, "app-1")
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-2", tag="2.0.0"))
    await until_step(world, f"app-2-{DEV}", "HealthChecking")
    await synced(world, repository, health="Degraded")
    await until_step(world, f"app-2-{DEV}", "Failed")
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-3", tag="3.0.0"))
    await verify(world, repository, "app-3")
