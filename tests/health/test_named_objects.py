"""An object that `health` names and that does not exist is told, with the nearest name that its author may know."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject, ResourceType
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_agent.health.argo_rollouts import ROLLOUT
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.flagger import CANARY
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION
from tests.agent.promotion_steps import BUNDLE_NAME, create, promotion_step, reached, start_agent, state
from tests.health.served_tools import annotate, application, put, serve
from tests.support.names import DEV, TEAM
from tests.support.repository import APPLICATION as APP
from tests.support.repository import GitRepository
from tests.support.world import World

pytestmark = pytest.mark.local_only("the objects of a tool are written by hand")

NEAR = f"{APP}-{DEV}"
KINDS = {
    "argocd": (APPLICATION, {}),
    "flux": (KUSTOMIZATION, {}),
    "flux-helm": (HELM_RELEASE, {"kind": "HelmRelease"}),
    "argoRollouts": (ROLLOUT, {}),
    "flagger": (CANARY, {}),
}


def naming(adapter: str, namespace: str = TEAM, **fields: Any) -> JsonObject:
    """Return a health that names an object which is not there."""
    type_ = adapter.partition("-")[0]
    return {"type": type_, type_: {"name": APP, "namespace": namespace, **fields}}


async def missing(world: World) -> JsonObject:
    """Return the condition of the step; nothing without one."""
    conditions = (await state(world)).get("conditions") or ()
    return next((one for one in conditions if one["type"] == "ProofMissing"), {})


async def told(world: World) -> list[str]:
    return [event["note"] for event in await world.events("ProofMissing")]


@pytest.mark.parametrize("adapter", KINDS)
async def test_missing_named_object_is_reported_with_the_nearest_name(
    world: World, repository: GitRepository, adapter: str
) -> None:
    kind, fields = KINDS[adapter]
    await serve(world, kind)
    await put(world, kind, TEAM, name=NEAR, spec={})
    await put(world, kind, TEAM, name="something-else", spec={})
    await start_agent(world)
    await create(world, promotion_step(repository, health=naming(adapter, **fields)))
    field = f"health.{adapter.partition('-')[0]}.name"
    said = f"waits for {kind.kind} {TEAM}/{APP} to exist; did you mean {NEAR}? Correct {field}"
    assert (await reached(world, "HealthChecking"))["message"] == said
    assert await told(world) == []
    await world.live(timedelta(seconds=50))
    assert await told(world) == [said]
    found = await missing(world)
    assert (found["status"], found["reason"], found["message"]) == ("True", f"{kind.kind}NotFound", said)
    written = (await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}"))["metadata"]["resourceVersion"]
    await world.live(timedelta(minutes=3))
    assert (await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}"))["metadata"]["resourceVersion"] == written
    assert await told(world) == [said]


async def test_names_of_a_namespace_that_is_not_quoted_are_not_told(world: World, repository: GitRepository) -> None:
    await serve(world, APPLICATION)
    await put(world, APPLICATION, "argocd", name=NEAR, spec={})
    await start_agent(world)
    await create(world, promotion_step(repository, health=naming("argocd", "argocd")))
    message = (await reached(world, "HealthChecking"))["message"]
    assert message.startswith(f"waits for Application argocd/{APP} ")
    assert message.endswith("correct health.argocd.name")
    await world.live(timedelta(seconds=50))
    assert NEAR not in str(await told(world))
    assert NEAR not in str(await state(world))
    await annotate(world, "argocd", TEAM)
    await world.live(timedelta(seconds=15))
    assert f"did you mean {NEAR}?" in (await state(world))["message"]
    await annotate(world, "argocd", None)
    await world.live(timedelta(seconds=15))
    assert NEAR not in (await state(world))["message"]


async def test_object_created_shortly_after_is_not_reported_missing(world: World, repository: GitRepository) -> None:
    await serve(world, APPLICATION)
    await start_agent(world)
    await create(world, promotion_step(repository, health=naming("argocd")))
    ours = (await reached(world, "HealthChecking"))["commit"]
    assert (await missing(world))["status"] == "False"
    await world.live(timedelta(seconds=15))
    await put(world, APPLICATION, TEAM, **application(repository, ours))
    await reached(world, "Verified")
    assert not await missing(world)
    await world.live(timedelta(minutes=2))
    assert await told(world) == []


async def test_a_name_that_is_like_none_says_what_to_do(world: World, repository: GitRepository) -> None:
    kind: ResourceType = KUSTOMIZATION
    await serve(world, kind)
    await put(world, kind, TEAM, name="zzz", spec={})
    await start_agent(world)
    await create(world, promotion_step(repository, health=naming("flux")))
    message = (await reached(world, "HealthChecking"))["message"]
    assert message.endswith(f"Kustomization {TEAM}/{APP} to exist; create it, or correct health.flux.name")
