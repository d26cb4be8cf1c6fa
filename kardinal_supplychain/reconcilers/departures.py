"""The runs that finished and were removed before a reconcile saw them.

A Job with `ttlSecondsAfterFinished: 0` is gone the moment it has finished, and a busy program may hear of both before
it reconciles the owner. The event of the deletion still has the object as it was. It is kept here until the status of
its owner tells that the run has finished; without it, the run would be made again for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kardinal.objects import JsonObject, Key, ResourceType
from kardinal.runtime import Event, KeyMemory

__all__ = ["Departures"]

MOST: Final = 20
"""The most objects that are kept of one owner, the newest of them, until its next reconcile."""


class Departures:
    """The last states of the removed objects of the owners of one controller."""

    def __init__(self, memory: KeyMemory) -> None:
        self._gone: dict[Key, list[tuple[ResourceType, JsonObject]]] = memory.map()

    def note(self, owner: Key, type_: ResourceType, event: Event) -> None:
        """Keep the last state of an object of an owner, if the event is that of its removal."""
        if event.new is None and event.old is not None:
            self._gone[owner] = [*self._gone.get(owner, ()), (type_, event.old)][-MOST:]

    def of(self, owner: Key) -> Sequence[tuple[ResourceType, JsonObject]]:
        """Return the objects of an owner that were removed since `forget`."""
        return self._gone.get(owner, [])

    def forget(self, owner: Key, known: Sequence[tuple[ResourceType, JsonObject]]) -> None:
        """Forget removed objects, because the status of their owner was written with them."""
        left = [each for each in self._gone.pop(owner, []) if each not in known]
        if left:
            self._gone[owner] = left
