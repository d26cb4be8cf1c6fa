"""Delete objects that an owner stamped: orphans, and runs that are not kept.

A status or a cache only says which object to look at. The object is read with the rights of the account that deletes
it, and is deleted by its uid if the owner controls it. So no object of another owner is deleted because a person wrote
its name into a status.

A refusal is an Event, and is tried again after a minute, then after two, up to an hour: a person may give the account
the right, and nothing else waits for the deletion.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from kardinal.clock import Clock
from kardinal.kube import Backoff, Client, Conflict, KubeError, NotFound
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.runtime import EventRecorder, KeyMemory

__all__ = ["Doomed", "Remover"]

RETRY = Backoff(base=60.0, cap=3600.0, jitter=0.0)
FINALIZERS_PAUSE = 60.0
"""Seconds after which an object is looked at again that finalizers hold up: its kind may not be watched any more."""
MESSAGE_LIMIT = 256


class Doomed(NamedTuple):
    """An object in the namespace of its owner that is to be deleted.

    `uid`: the uid of the object, if it is known: another object of its name is left alone.
    """

    resource: ResourceType
    name: str
    uid: str | None = None

    def __str__(self) -> str:
        """Return the object as kubectl takes it, such as `jobs.batch/web`."""
        return f"{f'{self.resource.plural}.{self.resource.group}'.removesuffix('.')}/{self.name}"


@dataclass(slots=True)
class _Held:
    """An object that is still there: until when it is left alone, and how often its deletion was refused in a row."""

    until: float
    attempts: int = 0


class Remover:
    """Deletes objects of the owners of one controller."""

    def __init__(self, *, clock: Clock, recorder: EventRecorder, memory: KeyMemory) -> None:
        self._clock = clock
        self._recorder = recorder
        self._held: dict[Key, dict[Doomed, _Held]] = memory.map()

    async def remove(self, owner: JsonObject, client: Client, doomed: Collection[Doomed]) -> dict[Doomed, timedelta]:
        """Delete all objects of an owner that are to be deleted, as the account of `client`.

        Return those that are still there, each with the time after which to try again.
        """
        before = self._held.get(key_of(owner), {})
        held: dict[Doomed, _Held] = {}
        for each in doomed:
            found = before.get(each)
            if found is None or found.until <= self._clock.monotonic():
                found = await self._remove(owner, client, each, found.attempts if found is not None else 0)
            if found is not None:
                held[each] = found
        self._held[key_of(owner)] = held
        now = self._clock.monotonic()
        return {each: timedelta(seconds=found.until - now) for each, found in held.items()}

    async def _remove(self, owner: JsonObject, client: Client, doomed: Doomed, attempts: int) -> _Held | None:
        """Delete an object; return None if it is gone, or if it is none of the owner's."""
        namespace = owner["metadata"]["namespace"]
        try:
            live = await client.get(doomed.resource, doomed.name, namespace)
            metadata = live["metadata"]
            if (doomed.uid is not None and metadata["uid"] != doomed.uid) or not _is_controlled_by(live, owner):
                return None
            if "deletionTimestamp" not in metadata:
                await client.delete(doomed.resource, doomed.name, namespace, uid=metadata["uid"])
                self._recorder.event(owner, reason="StampedObjectRemoved", note=f"Deleted object [{doomed}]")
        except (NotFound, Conflict):
            # Gone already, or another object of that name.
            return None
        except KubeError as error:
            note = f"Object [{doomed}] could not be deleted: {str(error)[:MESSAGE_LIMIT]}"
            self._recorder.event(owner, type="Warning", reason="StampedObjectNotRemoved", note=note)
            return _Held(self._clock.monotonic() + RETRY.delay(attempts), attempts + 1)
        return _Held(self._clock.monotonic() + FINALIZERS_PAUSE) if metadata.get("finalizers") else None


def _is_controlled_by(live: JsonObject, owner: JsonObject) -> bool:
    references = live["metadata"].get("ownerReferences") or ()
    controllers = [reference.get("uid") for reference in references if reference.get("controller") is True]
    return controllers == [owner["metadata"]["uid"]]
