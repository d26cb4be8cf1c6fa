"""Create an object under the first free name."""

from __future__ import annotations

from collections.abc import Iterable

from kardinal.kube.client import Client
from kardinal.kube.errors import AlreadyExists
from kardinal.objects import JsonObject, ResourceType

__all__ = ["create_first_free"]


async def create_first_free(
    client: Client, resource: ResourceType, manifests: Iterable[JsonObject], *, field_manager: str
) -> JsonObject | None:
    """Create the first of `manifests` whose name is free; return None if all names are taken. Raises `KubeError`."""
    for manifest in manifests:
        try:
            return await client.create(resource, manifest, field_manager=field_manager)
        except AlreadyExists:
            continue
    return None
