"""Finalizers: add and remove the program's own, and keep those of other programs.

Each write contains the resourceVersion, so that a finalizer that another client adds or removes at the same time is not
lost: the write is refused with `Conflict`, and the next run sees the present state.
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.clock import Clock
from kardinal.kube import Client, NotFound
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.runtime.key_memory import KeyMemory
from kardinal.runtime.timers import remaining

__all__ = ["Patience", "add_finalizer", "has_finalizer", "is_being_deleted", "remove_finalizer"]


class Patience:
    """The time left for each object, counted from the moment at which this process first saw it.

    It uses the monotonic clock. Timestamps of an API server come from another machine, whose clock may differ by an
    hour.
    """

    def __init__(self, patience: timedelta, *, clock: Clock, memory: KeyMemory) -> None:
        self._patience = patience
        self._clock = clock
        self._noticed: dict[Key, tuple[str, float]] = memory.map()

    def left(self, obj: JsonObject) -> timedelta:
        """Return the time left for an object; zero when the time is over."""
        key = key_of(obj)
        uid = obj["metadata"]["uid"]
        now = self._clock.monotonic()
        if self._noticed.get(key, ("", now))[0] != uid:
            self._noticed[key] = (uid, now)
        left = self._patience.total_seconds() - (now - self._noticed[key][1])
        return remaining(left)


def has_finalizer(obj: JsonObject, finalizer: str) -> bool:
    """Return whether an object has `finalizer`."""
    return finalizer in (obj["metadata"].get("finalizers") or ())


def is_being_deleted(obj: JsonObject) -> bool:
    """Return whether an object is being deleted and exists only because of its finalizers."""
    return "deletionTimestamp" in obj["metadata"]


async def add_finalizer(client: Client, resource: ResourceType, obj: JsonObject, finalizer: str) -> JsonObject | None:
    """Return the object with the finalizer; None if it is gone or being deleted, when adding one is not allowed."""
    if is_being_deleted(obj):
        return None
    if has_finalizer(obj, finalizer):
        return obj
    try:
        return await _write(client, resource, obj, [*(obj["metadata"].get("finalizers") or ()), finalizer])
    except NotFound:
        return None


async def remove_finalizer(client: Client, resource: ResourceType, obj: JsonObject, finalizer: str) -> None:
    """Remove the finalizer, if the object exists and has it."""
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
