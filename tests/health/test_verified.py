"""Environments that are Verified are looked at: what follows waits while one is no longer healthy."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.objects.conditions import find_condition
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from kardinal_local.plane.audit import WRITES
from tests.agent.promotion_steps import deploy
from tests.support.names import DEV, POLICIES, STAGING, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.repository import APPLICATION, GitRepository
from tests.support.reviewer import merge_pull_request
from tests.support.world import World

NAME = "app-1"
HEALTH = {"resource": {"name": APPLICATION}, "degradedAfter": "1s"}
GO = gate("go", 'bundle.labels.go == "yes"', applies_to=STAGING, namespace=POLICIES)
"""A gate before staging that `let_go` opens."""


async def until_step(world: World, name: str, *, bundle: str = NAME, **wanted: Any) -> JsonObject:
    """Live until the status of a step has these values."""
    found = await world.wait_for(
        PROMOTION_STEP,
        f"{bundle}-{name}",
        lambda obj: all((obj.get("status") or {}).get(field) == value for field, value in wanted.items()),
    )
    status: JsonObject = found["status"]
    return status


async def begin(
    world: World, repository: GitRepository, *, alone: bool = False, target: str = STAGING, **staging: Any
) -> ControlPlane:
    """Promote a Bundle until it is Verified in dev; `alone`: nothing follows."""
    await deploy(world)
    controller = await start_controller(world)
    following = [] if alone else [environment(STAGING, **staging)]
    await world.apply(pipeline(repository, environments=[environment(DEV, health=HEALTH), *following]))
    await world.settle()
    await world.apply(bundle(NAME, intent={} if alone else {"target": target}))
    status = await until_step(world, DEV, state="Verified")
    assert (status["healthy"], status["healthySince"]) == (True, status["verifiedAt"])
    return controller


async def let_go(world: World) -> None:
    body = {"metadata": {"labels": {"go": "yes"}}}
    await world.client.patch(BUNDLE, NAME, TEAM, body, kind=PatchType.MERGE)


async def replace_in_dev(world: World) -> None:
    """Let another Bundle land in dev, at a later moment than the one that runs there."""
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-2", tag="1.2.0"))
    await until_step(world, DEV, bundle="app-2", state="HealthChecking")
    await world.wait_for(BUNDLE, NAME, lambda obj: "replacedAt" in obj["status"]["environments"][DEV])


def held(obj: JsonObject) -> str | None:
    """Return what a step is held by; None where nothing holds it."""
    condition = find_condition(obj.get("status") or {}, "Held") or {}
    return condition["message"] if condition.get("status") == "True" else None


def watched(controller: ControlPlane) -> set[str]:
    """Return the kinds that are watched for proofs."""
    return {informer.resource.kind for informer in controller.manager.dynamic.informers}


async def test_downstream_is_held_while_an_environment_is_degraded_until_healthy(
    world: World, repository: GitRepository
) -> None:
    await begin(world, repository, approval="pr-review")
    await until_step(world, STAGING, state="WaitingForMerge")
    await deploy(world, available=False)
    status = await until_step(world, DEV, healthy=False)
    degraded = find_condition(status, "Degraded") or {}
    assert (status["state"], degraded["status"], degraded["reason"]) == ("Verified", "True", "Unhealthy")
    waiting = await world.wait_for(PROMOTION_STEP, f"{NAME}-{STAGING}", lambda obj: bool(held(obj)))
    assert f"held: {DEV} is no longer healthy: waits for Deployment {DEV}/{APPLICATION}: " in (held(waiting) or "")
    said = (await world.get(BUNDLE, NAME))["status"]
    assert (said["phase"], said["environments"][DEV]["state"]) == ("Promoting", "Verified")
    assert said["environments"][DEV]["healthy"] is False
    await deploy(world)
    status = await until_step(world, DEV, healthy=True)
    assert datetime.fromisoformat(status["healthySince"]) > datetime.fromisoformat(status["verifiedAt"])
    await world.wait_for(PROMOTION_STEP, f"{NAME}-{STAGING}", lambda obj: not held(obj))
    assert [len(await world.events(reason)) for reason in ("Degraded", "HealthyAgain")] == [1, 1]

    # Also when what follows has landed: a status must not tell of a trouble that is over.
    await deploy(world, available=False)
    await until_step(world, DEV, healthy=False)
    await merge_pull_request(world, repository, 1)
    await until_step(world, STAGING, state="HealthChecking")
    await deploy(world)
    await until_step(world, DEV, healthy=True)


async def test_the_soak_starts_anew_when_health_returns(world: World, repository: GitRepository) -> None:
    soak = gate("soak", "bundle.upstreamSoakMinutes >= 0.05", applies_to=STAGING, namespace=POLICIES)
    await world.apply(soak)
    await begin(world, repository)
    await deploy(world, available=False)
    await until_step(world, DEV, healthy=False)
    name = f"{NAME}-{STAGING}-soak"
    shut = await world.wait_for(POLICY_GATE, name, lambda obj: obj["status"]["ready"] is False)
    assert shut["status"]["reason"] == "bundle.upstreamSoakMinutes = 0 (threshold: >= 0.05)"
    await world.live(timedelta(seconds=4))
    assert await world.find(PROMOTION_STEP, f"{NAME}-{STAGING}") is None
    await deploy(world)
    healthy = datetime.fromisoformat((await until_step(world, DEV, healthy=True))["healthySince"])
    opened = await world.wait_for(POLICY_GATE, name, lambda obj: obj["status"]["ready"] is True)
    assert datetime.fromisoformat(opened["status"]["lastEvaluatedAt"]) - healthy >= timedelta(seconds=3)
    await world.wait_for(PROMOTION_STEP, f"{NAME}-{STAGING}", lambda _: True)


@pytest.mark.virtual_time("lives through an hour; watches end half a minute after the last look")
async def test_an_environment_is_looked_at_until_what_follows_has_landed(
    world: World, repository: GitRepository
) -> None:
    await world.apply(GO)
    controller = await begin(world, repository)
    await world.live(timedelta(minutes=1))
    before = world.audit.count(verbs=WRITES)
    await world.live(timedelta(hours=1))
    assert world.audit.count(verbs=WRITES) == before
    assert watched(controller) == {"Deployment"}
    await deploy(world, STAGING)
    await let_go(world)
    await until_step(world, STAGING, state="Verified")
    await world.live(timedelta(minutes=1))
    assert watched(controller) == set()


@pytest.mark.virtual_time("watches end half a minute after the last look")
async def test_an_environment_that_nothing_follows_is_not_looked_at(world: World, repository: GitRepository) -> None:
    controller = await begin(world, repository, alone=True)
    await deploy(world, available=False)
    await world.live(timedelta(minutes=1))
    assert watched(controller) == set()
    assert (await until_step(world, DEV))["healthy"] is True


async def test_environment_is_looked_at_again_when_its_bundle_goes_further(
    world: World, repository: GitRepository
) -> None:
    await world.apply(GO)
    await begin(world, repository, target=DEV)
    await world.wait_for(BUNDLE, NAME, lambda obj: obj["status"]["phase"] == "Verified")
    body = {"spec": {"intent": {"target": STAGING}}}
    await world.client.patch(BUNDLE, NAME, TEAM, body, kind=PatchType.MERGE)
    await world.wait_for(POLICY_GATE, f"{NAME}-{STAGING}-go", lambda obj: obj.get("status", {}).get("ready") is False)
    await deploy(world, available=False)
    await until_step(world, DEV, healthy=False)

    await let_go(world)
    await world.wait_for(POLICY_GATE, f"{NAME}-{STAGING}-go", lambda obj: obj["status"]["ready"] is True)
    await world.live(timedelta(seconds=2))
    assert await world.find(PROMOTION_STEP, f"{NAME}-{STAGING}") is None
    await deploy(world)
    await world.wait_for(PROMOTION_STEP, f"{NAME}-{STAGING}", lambda _: True)


async def test_a_bundle_that_another_one_has_replaced_is_not_looked_at(world: World, repository: GitRepository) -> None:
    await begin(world, repository, approval="pr-review")
    await until_step(world, STAGING, state="WaitingForMerge")
    await replace_in_dev(world)
    await deploy(world, available=False)
    await world.live(timedelta(seconds=2))
    assert (await until_step(world, DEV))["healthy"] is True


async def test_a_restart_goes_on_looking_until_another_bundle_replaces_the_unhealthy_one(
    world: World, repository: GitRepository
) -> None:
    """Also that of a Bundle that has finished, which nothing else concerns any more."""
    controller = await begin(world, repository, approval="pr-review")
    await until_step(world, STAGING, state="WaitingForMerge")
    await world.stop(controller)
    await deploy(world, available=False)
    await start_controller(world)
    await until_step(world, DEV, healthy=False)
    await merge_pull_request(world, repository, 1)
    await deploy(world, STAGING)
    await world.wait_for(BUNDLE, NAME, lambda obj: obj["status"]["phase"] == "Verified")
    await replace_in_dev(world)
    await deploy(world)
    await world.live(timedelta(seconds=2))
    assert (await until_step(world, DEV))["healthy"] is False
