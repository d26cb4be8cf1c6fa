"""Finalizers: one that is added stays until the same program takes it off, and those of others are kept.

The resource version is sent along, so that a finalizer that another writer adds or removes meanwhile is not lost: such
a write is refused with `Conflict`, and the next run sees what there is.
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.kube import Client, NotFound
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.runtime.clock import Clock

__all__ = ["Patience", "add_finalizer", "has_finalizer", "is_being_deleted", "remove_finalizer"]

_INSTANT = 0.001
"""Seconds below which a timer has fired: sums of floats do not meet exactly."""


class Patience:
    """How long is left to objects, each since this process has noticed it, by a clock that cannot be set.

    Times that an API server writes are its own: by the clock of another machine they may be an hour ago.
    """

    def __init__(self, patience: timedelta, *, clock: Clock) -> None:
        self._patience = patience
        self._clock = clock
        self._noticed: dict[Key, tuple[str, float]] = {}

    def left(self, obj: JsonObject) -> timedelta:
        """Return how long is left to an object; nothing once the time is over."""
        key, uid, now = key_of(obj), obj["metadata"]["uid"], self._clock.monotonic()
        if self._noticed.get(key, ("", now))[0] != uid:
            self._noticed[key] = (uid, now)
        left = self._patience.total_seconds() - (now - self._noticed[key][1])
        return timedelta(seconds=left) if left > _INSTANT else timedelta()

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        self._noticed.pop(key, None)


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
