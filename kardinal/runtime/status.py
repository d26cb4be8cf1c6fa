"""Writing status: only what differs, and nothing when nothing does.

Every write wakes everyone who watches the object, so a writer that repeats itself keeps the whole system busy. The
patch is computed from the object the reconciler has read to the status it wants; an empty patch is no request. The
patch names the uid, so that a status meant for an object that was deleted and made again is refused rather than given
to the wrong one.

Status must be deterministic: a time stamp or a counter that changes at each run defeats the comparison and, written
on the error path, turns back-off into a hot loop.
"""

from __future__ import annotations

from typing import Any

from kardinal.kube import Client, PatchType
from kardinal.objects import JsonObject, ResourceType

__all__ = ["StatusWriter", "merge_patch"]


class StatusWriter:
    """The one way a reconciler writes status."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def write(
        self, resource: ResourceType, current: JsonObject, status: JsonObject, *, shared: bool = False
    ) -> JsonObject | None:
        """Make the status of `current` equal to `status`; None when it already was and nothing was sent.

        `shared`: another program writes parts of this status, too, so that the write is refused with `Conflict` where
        `current` is not the latest.
        """
        changes = merge_patch(current.get("status") or {}, status)
        if not changes:
            return None
        metadata = current["metadata"]
        body: JsonObject = {"status": changes}
        if uid := metadata.get("uid"):
            body["metadata"] = {"uid": uid}
        if shared:
            body.setdefault("metadata", {})["resourceVersion"] = metadata["resourceVersion"]
        return await self._client.patch(
            resource,
            metadata["name"],
            metadata.get("namespace"),
            body,
            kind=PatchType.MERGE,
            subresource="status",
        )


def merge_patch(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the smallest RFC 7386 patch from `old` to `new`.

    Lists are replaced whole, null and absent are the same.
    """
    patch: dict[str, Any] = {name: None for name in old if old[name] is not None and new.get(name) is None}
    for name, value in new.items():
        before = old.get(name)
        if value is None or value == before:
            continue
        if isinstance(value, dict) and isinstance(before, dict):
            if inner := merge_patch(before, value):
                patch[name] = inner
        else:
            patch[name] = value
    return patch
