"""Serve the kinds of GitOps tools and write their objects by hand, as the tools would."""

from __future__ import annotations

from typing import Any

from kardinal.kube import NotFound
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, NAMESPACE, JsonObject, ResourceType
from tests.support.names import DEV
from tests.support.objects import namespace
from tests.support.repository import APPLICATION as APP
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["ANNOTATION", "annotate", "application", "git_repository", "kustomization", "put", "serve"]

ANNOTATION = "kardinal.io/pipelines-from"

_OPEN: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


async def serve(world: World, *kinds: ResourceType, status: bool = False) -> None:
    """Have the server serve kinds of a tool, with any fields; `status`: as a subresource."""
    for kind in kinds:
        names = {
            "kind": kind.kind,
            "plural": kind.plural,
            "singular": kind.kind.lower(),
            "listKind": f"{kind.kind}List",
        }
        version: JsonObject = {"name": kind.version, "served": True, "storage": True}
        version["schema"] = {"openAPIV3Schema": _OPEN}
        if status:
            version["subresources"] = {"status": {}}
        crd = {
            "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{kind.plural}.{kind.group}"},
            "spec": {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]},
        }
        await world.client.apply(CUSTOM_RESOURCE_DEFINITION, crd, field_manager="test")
    await world.until(lambda: _are_served(world, *kinds))


async def _are_served(world: World, *kinds: ResourceType) -> bool:
    try:
        for kind in kinds:
            await world.client.list(kind)
            found = await world.client.fetch(f"/apis/{kind.api_version}")
            if kind.plural not in {each["name"] for each in found["resources"]}:
                return False
    except NotFound:
        return False
    return True


async def put(world: World, kind: ResourceType, where: str, *, name: str = APP, **fields: Any) -> JsonObject:
    """Write an object, in a namespace that is made where there is none."""
    await world.client.apply(NAMESPACE, namespace(where), field_manager="test")
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, "namespace": where}, **fields}
    return await world.client.apply(kind, body, field_manager="tool", force=True)


async def annotate(world: World, where: str, value: str | None) -> None:
    """Say whose Pipelines a namespace lets in; the namespace is made where there is none."""
    await world.client.apply(NAMESPACE, namespace(where), field_manager="test")
    await world.client.patch(NAMESPACE, where, None, {"metadata": {"annotations": {ANNOTATION: value}}})
    await world.settle()


def application(
    repository: GitRepository, revision: str = "", *, health: str = "Healthy", path: str = f"environments/{DEV}"
) -> JsonObject:
    """Return an Application of the repository, Synced to a revision, or with none as nothing has looked at it."""
    source = {"repoURL": repository.url, "path": path, "targetRevision": "main"}
    made: JsonObject = {"spec": {"source": source, "destination": {"namespace": DEV}, "project": "default"}}
    if revision:
        sync = {"status": "Synced", "revision": revision, "comparedTo": {"source": source}}
        made["status"] = {"sync": sync, "health": {"status": health}, "reconciledAt": "2026-03-03T10:00:00Z"}
    return made


def kustomization(
    revision: str = "", *, path: str = f"./environments/{DEV}", source: str = APP, generation: int = 2
) -> JsonObject:
    """Return a Kustomization that reads the GitRepository `source` and has applied a revision, with its Deployment.

    Without a subresource every write of the status makes another `generation`.
    """
    spec = {"path": path, "prune": True, "sourceRef": {"kind": "GitRepository", "name": source}}
    if not revision:
        return {"spec": spec}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "ReconciliationSucceeded",
        "observedGeneration": generation,
        "lastTransitionTime": "2026-03-03T10:00:00Z",
    }
    status = {
        "lastAppliedRevision": f"main@sha1:{revision}",
        "lastAttemptedRevision": f"main@sha1:{revision}",
        "conditions": [ready],
        "inventory": {"entries": [{"id": f"{DEV}_{APP}_apps_Deployment", "v": "v1"}]},
    }
    return {"spec": spec, "status": status}


def git_repository(repository: GitRepository, *, branch: str = "main") -> JsonObject:
    """Return a GitRepository of the repository."""
    return {"spec": {"url": repository.url, "ref": {"branch": branch}}}
