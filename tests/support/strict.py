"""Applying manifests as `kubectl apply --server-side` does: a field that the server does not know is an error."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from kardinal.kube import load_connection
from kardinal.objects import ResourceType
from tests.support.identities import RESOURCES
from tests.support.world import KINDS

__all__ = ["apply_strictly"]

JsonObject = dict[str, Any]

SERVICE = ResourceType("", "v1", "Service", "services")
SERVED = KINDS | {(resource.api_version, resource.kind): resource for resource in (SERVICE, *RESOURCES.values())}


async def apply_strictly(kubeconfig: Path, objects: Iterable[JsonObject]) -> None:
    """Apply `objects` in their order; the first one that is refused fails the test with the server's words."""
    connection = await load_connection(kubeconfig)
    access = await connection.access()
    headers = {"Content-Type": "application/apply-patch+yaml"}
    if access.authorization:
        headers["Authorization"] = access.authorization
    query = {"fieldManager": "test", "fieldValidation": "Strict"}
    async with aiohttp.ClientSession(connection.server, headers=headers) as session:
        for obj in objects:
            resource = SERVED[obj["apiVersion"], obj["kind"]]
            path = resource.path(namespace=obj["metadata"].get("namespace"), name=obj["metadata"]["name"])
            async with session.patch(path, params=query, data=yaml.safe_dump(obj), ssl=access.tls or True) as answer:
                assert answer.status in (200, 201), f"{path}: {await answer.text()}"
