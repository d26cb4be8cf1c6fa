"""Promotions that Argo CD and Flux speak for, from the landing to the proof; what the tools say is written by hand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.flux_common import KUSTOMIZATION
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, reached, start_agent, state
from tests.health.served_tools import application, kustomization, put, serve
from tests.support.names import DEV
from tests.support.repository import APPLICATION as APP
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

ARGOCD = {"type": "argocd", "argocd": {"name": APP, "namespace": "argocd"}}
FLUX = {"type": "flux", "flux": {"name": APP, "namespace": "flux-system"}}


@pytest.mark.local_only("the objects of a tool are written by hand")
async def test_an_application_that_is_synced_to_a_later_commit_proves_it(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    before = repository.head()
    await put(world, APPLICATION, "argocd", **application(repository, before))
    await start_agent(world)
    await create(world, promotion_step(repository, health=ARGOCD))
    status = await reached(world, "HealthChecking")
    assert "without commit" in status["message"], status["message"]
    ours = (await state(world))["commit"]
    later = repository.commit({"unrelated": "x\n"})
    assert later not in (before, ours)
    await put(world, APPLICATION, "argocd", **application(repository, later, health="Progressing"))
    await world.settle()
    assert (await state(world))["state"] == "HealthChecking"
    await put(world, APPLICATION, "argocd", **application(repository, later))
    status = await reached(world, "Verified")
    assert status["message"].startswith(f"Application argocd/{APP} is Synced to commit {ours[:7]} ")


@pytest.mark.local_only("the objects of a tool are written by hand")
async def test_a_revision_that_is_no_commit_of_the_repository_proves_nothing(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    await start_agent(world)
    await create(world, promotion_step(repository, health=ARGOCD))
    await reached(world, "HealthChecking")
    for revision in ("main", "f" * 40, "f" * 64, "../../etc/passwd"):
        await put(world, APPLICATION, "argocd", **application(repository, revision))
        await world.live(timedelta(seconds=40))
        assert (await state(world))["state"] == "HealthChecking"


@pytest.mark.local_only("the objects of a tool are written by hand")
async def test_need_of_a_person_is_written_at_once_and_once(world: World, repository: GitRepository) -> None:
    await serve(world, APPLICATION)
    await start_agent(world)
    await create(world, promotion_step(repository, health=ARGOCD))
    ours = (await reached(world, "HealthChecking"))["commit"]
    later = repository.commit({"unrelated": "x\n"})

    async def says(revision: str, *, sync: str = "Synced", health: str = "Progressing") -> str:
        found = application(repository, revision, health=health)
        found["status"]["sync"]["status"] = sync
        await put(world, APPLICATION, "argocd", **found)
        await world.settle()
        return str((await state(world))["message"])

    await world.live(timedelta(seconds=11))
    rollout = await says(ours)
    assert rollout.endswith("it is Progressing")
    # No time has passed since then.
    to_sync = await says(later, sync="OutOfSync")
    assert to_sync.endswith("a person must sync it")
    for _ in range(3):
        written = (await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}"))["metadata"]["resourceVersion"]
        assert await says(ours) == to_sync
        assert await says(later, sync="OutOfSync") == to_sync
        assert (await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}"))["metadata"]["resourceVersion"] == written
    await says(ours)
    await world.live(timedelta(seconds=11))
    assert (await state(world))["message"] == rollout
    suspended = await says(ours, health="Suspended")
    assert suspended.startswith(f"{rollout.partition(':')[0]}: it is Suspended")
    assert suspended.endswith("must resume what is paused")


@pytest.mark.local_only("the objects of a tool are written by hand")
async def test_a_tool_that_is_not_installed_is_said_and_looked_for_again(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, health=ARGOCD))
    status = await reached(world, "HealthChecking")
    assert status["message"] == (
        "the cluster does not serve applications.argoproj.io in version v1alpha1: install what it belongs to"
    )
    await serve(world, APPLICATION)
    ours = (await state(world))["commit"]
    await put(world, APPLICATION, "argocd", **application(repository, ours))
    await reached(world, "Verified")


@pytest.mark.local_only("the objects of a tool are written by hand")
async def test_a_kustomization_is_believed_once_it_has_said_so_for_a_second(
    world: World, repository: GitRepository
) -> None:
    await serve(world, KUSTOMIZATION, status=True)
    await deploy(world)
    await start_agent(world)
    await create(world, promotion_step(repository, health=FLUX))
    await reached(world, "HealthChecking")
    ours = (await state(world))["commit"]
    spec = {"path": f"./environments/{DEV}", "prune": True, "sourceRef": {"kind": "GitRepository", "name": "x"}}
    made = await put(world, KUSTOMIZATION, "flux-system", spec=spec)
    generation = made["metadata"]["generation"]
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "ReconciliationSucceeded",
        "observedGeneration": generation,
        "lastTransitionTime": "2026-03-03T10:00:00Z",
    }
    applied = {
        "observedGeneration": generation,
        "lastAppliedRevision": f"main@sha1:{ours}",
        "lastAttemptedRevision": f"main@sha1:{ours}",
        "conditions": [ready],
        "inventory": {"entries": [{"id": f"{DEV}_{APP}_apps_Deployment", "v": "v1"}]},
    }
    body = {"status": applied}
    began = world.clock.now()
    await world.client.patch(KUSTOMIZATION, APP, "flux-system", body, kind=PatchType.MERGE, subresource="status")
    status = await reached(world, "Verified")
    assert world.clock.now() - began >= timedelta(seconds=1)
    assert f"{IMAGE}:1.1.0" in status["message"] or ours[:7] in status["message"]


@pytest.mark.local_only("the objects of a tool are written by hand")
async def test_a_failure_lasts_while_flux_tries_the_same_again_and_begins_anew_with_another_commit(
    world: World, repository: GitRepository
) -> None:
    """Each retry flips Ready False → Unknown → False: a failure that had to last in between would never count."""
    await serve(world, KUSTOMIZATION, status=True)
    await put(world, KUSTOMIZATION, "flux-system", **kustomization())
    await start_agent(world)
    await create(world, promotion_step(repository, health=FLUX))
    ours = (await reached(world, "HealthChecking"))["commit"]

    async def says(status: str, reason: str, *, attempted: str) -> JsonObject:
        ready = {"type": "Ready", "status": status, "reason": reason, "observedGeneration": 1}
        body = {"status": {"lastAttemptedRevision": f"main@sha1:{attempted}", "conditions": [ready]}}
        await world.client.patch(KUSTOMIZATION, APP, "flux-system", body, kind=PatchType.MERGE, subresource="status")
        await world.settle()
        noted: JsonObject = (await state(world)).get("health") or {}
        return noted

    failed = ("False", "HealthCheckFailed")
    trying = ("Unknown", "Progressing")
    first = await says(*failed, attempted=ours)
    assert first["reason"] == "HealthCheckFailed"
    for _ in range(2):
        await world.live(timedelta(seconds=10))
        assert await says(*trying, attempted=ours) == first
        assert await says(*failed, attempted=ours) == first
    later = repository.commit({"unrelated": "x\n"})
    assert await says(*trying, attempted=later) == {}
    second = await says(*failed, attempted=later)
    assert second["failingSince"] > first["failingSince"]
    # While it tries again nothing ends, however long that takes.
    assert await says(*trying, attempted=later) == second
    await world.live(timedelta(minutes=2))
    assert (await state(world))["state"] == "HealthChecking"
    await says(*failed, attempted=later)
    status = await reached(world, "Failed")
    assert status["conditions"][0]["reason"] == "HealthFailed"
