"""Watches that are lost for a while, and objects that are deleted and made again under their names."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import yaml

from kardinal.objects import DEPLOYMENT, ResourceType
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.flux_common import KUSTOMIZATION
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent, state
from tests.health.served_tools import application, kustomization, put, serve
from tests.health.test_bad_days import message_with
from tests.health.test_clusters import Elsewhere, elsewhere, proved_elsewhere, put_secret
from tests.support.names import DEV, TEAM
from tests.support.relay import relay_to
from tests.support.repository import APPLICATION as APP
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

__all__ = ["elsewhere"]

ARGOCD = {"type": "argocd", "argocd": {"name": APP, "namespace": TEAM}}
NOT_YET = "the promoted image yet"
FLUX = {"type": "flux", "flux": {"name": APP, "namespace": TEAM}}


@pytest.mark.local_only("the other cluster is a local plane, on the clock of this one")
@pytest.mark.parametrize("lost_for", [timedelta(), timedelta(minutes=10)], ids=["a moment", "ten minutes"])
async def test_changes_during_a_lost_watch_are_seen_afterwards(
    world: World, repository: GitRepository, elsewhere: Elsewhere, lost_for: timedelta
) -> None:
    config = yaml.safe_load(elsewhere.kubeconfig)
    async with relay_to(elsewhere.plane.port) as relay:
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{relay.port}"
        await put_secret(world, yaml.safe_dump(config))
        agent = await start_agent(world)
        await deploy(world, client=elsewhere.client, image=f"{IMAGE}:1.0.0")
        await create(world, proved_elsewhere(repository, timeout="2h"))
        await message_with(world, "must run")
        relay.cut()
        await deploy(world, client=elsewhere.client)
        if lost_for:
            await message_with(world, "cluster eu is unreachable since ")
            await world.live(lost_for)
            assert (await state(world))["state"] == "HealthChecking"
        relay.mend()
        await reached(world, "Verified")
        await world.stop(agent)


async def test_a_deployment_that_is_made_again_is_judged_anew(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    before = await deploy(world, image=f"{IMAGE}:1.0.0")
    await create(world, promotion_step(repository))
    await message_with(world, NOT_YET)
    await world.delete(DEPLOYMENT, APP, DEV)
    await message_with(world, f"Deployment {DEV}/{APP} to exist")
    again = await deploy(world, image=f"{IMAGE}:1.0.0")
    assert again["metadata"]["uid"] != before["metadata"]["uid"]
    await message_with(world, NOT_YET)
    await deploy(world, available=False)
    assert (await state(world))["state"] == "HealthChecking"
    await deploy(world)
    await reached(world, "Verified")


@pytest.mark.parametrize(
    ("kind", "health"), [(APPLICATION, ARGOCD), (KUSTOMIZATION, FLUX)], ids=["Application", "Kustomization"]
)
async def test_an_object_of_a_tool_that_is_made_again_is_judged_anew(
    world: World, repository: GitRepository, kind: ResourceType, health: dict[str, Any]
) -> None:
    """It begins without a status, and its generation with 1 again."""

    def said(revision: str = "") -> dict[str, Any]:
        return kustomization(revision) if kind is KUSTOMIZATION else application(repository, revision)

    await serve(world, kind)
    await deploy(world)
    before = await put(world, kind, TEAM, **said())
    await put(world, kind, TEAM, **said(repository.head()))
    await start_agent(world)
    await create(world, promotion_step(repository, health=health))
    commit = (await reached(world, "HealthChecking"))["commit"]
    await world.client.delete(kind, APP, TEAM)
    await message_with(world, f"{kind.kind} {TEAM}/{APP} to exist")
    again = await put(world, kind, TEAM, **said())
    assert again["metadata"]["uid"] != before["metadata"]["uid"]
    await world.live(timedelta(seconds=2))
    assert (await state(world))["state"] == "HealthChecking"
    await put(world, kind, TEAM, **said(commit))
    await reached(world, "Verified")
