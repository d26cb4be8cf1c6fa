"""Promotions that Argo CD and Flux speak for, from the landing to the proof; what the tools say is written by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.kube import PatchType
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, JsonObject, ResourceType
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.flux_common import KUSTOMIZATION
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent, state
from tests.support.names import DEV
from tests.support.objects import namespace
from tests.support.repository import APPLICATION as APP
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

OPEN: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def serve(world: World, kind: ResourceType, *, status: bool) -> None:
    """Have the server serve a kind of a tool, with any fields."""
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    version: JsonObject = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN}}
    if status:
        version["subresources"] = {"status": {}}
    crd = {
        "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
    await world.client.apply(CUSTOM_RESOURCE_DEFINITION, crd, field_manager="test")
    await world.settle()


async def put(world: World, kind: ResourceType, where: str, **fields: Any) -> JsonObject:
    await world.client.apply(NAMESPACE, namespace(where), field_manager="test")
    metadata = {"name": APP, "namespace": where}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **fields}
    return await world.client.apply(kind, body, field_manager="tool", force=True)


def application(repository: GitRepository, revision: str, *, health: str = "Healthy") -> JsonObject:
    source = {"repoURL": repository.url, "path": f"environments/{DEV}", "targetRevision": "main"}
    compared = {"source": source, "destination": {"namespace": DEV}}
    sync = {"status": "Synced", "revision": revision, "comparedTo": compared}
    return {
        "spec": {"source": source, "destination": {"namespace": DEV}, "project": "default"},
        "status": {"sync": sync, "health": {"status": health}, "reconciledAt": "2026-03-03T10:00:00Z"},
    }


ARGOCD = {"type": "argocd", "argocd": {"name": APP, "namespace": "argocd"}}
FLUX = {"type": "flux", "flux": {"name": APP, "namespace": "flux-system"}}


@pytest.mark.local_only("the objects of a tool are written by hand")
async def test_an_application_that_is_synced_to_a_later_commit_proves_it(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION, status=False)
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
    assert status["message"] == f"Application argocd/{APP} is Synced to commit {ours[:7]} and Healthy"


@pytest.mark.local_only("the objects of a tool are written by hand")
async def test_a_revision_that_is_no_commit_of_the_repository_proves_nothing(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION, status=False)
    await start_agent(world)
    await create(world, promotion_step(repository, health=ARGOCD))
    await reached(world, "HealthChecking")
    for revision in ("main", "f" * 40, "f" * 64, "../../etc/passwd"):
        await put(world, APPLICATION, "argocd", **application(repository, revision))
        await world.live(timedelta(seconds=40))
        assert (await state(world))["state"] == "HealthChecking"


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
    await serve(world, APPLICATION, status=False)
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
