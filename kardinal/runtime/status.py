"""Write status: only the differences, and nothing if there are none.

Every write wakes every watcher of the object, so a writer that repeats itself keeps the whole system busy. The patch is
computed from the object that the reconciler has read to the status that it wants; an empty patch is not sent. The patch
contains the uid, so that a status for an object that was deleted and created again is refused instead of being written
to the wrong object.

A status must be deterministic: a timestamp or a counter that changes in each run defeats the comparison, and written in
an error path it turns the back-off into a busy loop.
"""

from __future__ import annotations

from typing import Any

from kardinal.kube import Client, PatchType
from kardinal.objects import JsonObject, ResourceType

__all__ = ["StatusWriter", "merge_patch"]


class StatusWriter:
    """The only way in which a reconciler writes status."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def write(
        self, resource: ResourceType, current: JsonObject, status: JsonObject, *, shared: bool = False
    ) -> JsonObject | None:
        """Make the status of `current` equal to `status`; return None if it was equal and nothing was sent.

        `shared`: another program writes parts of this status, too, so the write is refused with `Conflict` if `current`
        is not the latest version. Defaults to False.
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

    Lists are replaced as a whole; null and absent are equal.
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
