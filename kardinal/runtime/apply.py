"""Owning children: server-side apply with an owner reference.

Apply is the write verb for children because it is level-triggered by itself: the same intent sent twice changes
nothing, what others own stays theirs, what we stop wanting goes. The owner reference makes the server delete the
child with its owner; a reference it could not follow would make it delete the child at once, so the rules are checked
here. Design: runtime.md 1.7.
"""

from __future__ import annotations

from kardinal.api import ResourceType
from kardinal.kube import Client, JsonObject

__all__ = ["apply", "owned_by", "owner_reference"]


async def apply(
    client: Client,
    resource: ResourceType,
    obj: JsonObject,
    *,
    field_manager: str,
    owner: JsonObject | None = None,
    force: bool = True,
) -> JsonObject:
    """Make the fields of `obj` so, as a child of `owner` when one is given."""
    intent = obj if owner is None else owned_by(obj, owner)
    return await client.apply(resource, intent, field_manager=field_manager, force=force)


def owned_by(obj: JsonObject, owner: JsonObject) -> JsonObject:
    """`obj` with `owner` as its controller."""
    namespace = owner["metadata"].get("namespace")
    if namespace and obj["metadata"].get("namespace") != namespace:
        raise ValueError(
            f"{owner['kind']} {owner['metadata']['name']} in namespace {namespace} cannot own "
            f"{obj['kind']} {obj['metadata']['name']} in another namespace: the server would delete it"
        )
    reference = owner_reference(owner)
    others = [each for each in obj["metadata"].get("ownerReferences", ()) if each["uid"] != reference["uid"]]
    if any(each.get("controller") for each in others):
        raise ValueError(f"{obj['kind']} {obj['metadata']['name']} already has another controller")
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [*others, reference]}}


def owner_reference(owner: JsonObject) -> JsonObject:
    """A reference by which `owner` controls its child.

    It does not block the deletion of the owner: that matters to foreground deletion only, and asking for it needs a
    permission on the owner's finalizers where that is enforced.
    """
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
