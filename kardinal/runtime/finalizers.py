"""Finalizers: one that is added stays until the same program takes it off, and those of others are kept.

The resource version is sent along, so that a finalizer that another writer adds or removes meanwhile is not lost: such
a write is refused with `Conflict`, and the next run sees what there is.
"""

from __future__ import annotations

from kardinal.kube import Client, NotFound
from kardinal.objects import JsonObject, ResourceType

__all__ = ["add_finalizer", "has_finalizer", "is_being_deleted", "remove_finalizer"]


def has_finalizer(obj: JsonObject, finalizer: str) -> bool:
    """Return whether an object is kept by `finalizer`."""
    return finalizer in (obj["metadata"].get("finalizers") or ())


def is_being_deleted(obj: JsonObject) -> bool:
    """Return whether an object is only kept by its finalizers."""
    return "deletionTimestamp" in obj["metadata"]


async def add_finalizer(client: Client, resource: ResourceType, obj: JsonObject, finalizer: str) -> JsonObject | None:
    """Return the object with the finalizer; None where it is gone or being deleted, when none may be added."""
    if is_being_deleted(obj):
        return None
    if has_finalizer(obj, finalizer):
        return obj
    try:
        return await _write(client, resource, obj, [*(obj["metadata"].get("finalizers") or ()), finalizer])
    except NotFound:
        return None


async def remove_finalizer(client: Client, resource: ResourceType, obj: JsonObject, finalizer: str) -> None:
    """Take the finalizer off, where the object has it and is there."""
    if not has_finalizer(obj, finalizer):
        return
    try:
        await _write(client, resource, obj, [one for one in obj["metadata"]["finalizers"] if one != finalizer])
    except NotFound:
        return


async def _write(client: Client, resource: ResourceType, obj: JsonObject, finalizers: list[str]) -> JsonObject:
    metadata = obj["metadata"]
    body = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}}
    return await client.patch(resource, metadata["name"], metadata.get("namespace"), body)
