"""The sources of a controller: changes of objects, and keys that are pushed.

A `Watch` maps each changed object to the keys it concerns. An update maps the old and the new state, because an
object that changes its owner concerns both. What existed before the program started is work of low priority: after a
restart everything wants a look, and a person who is waiting for an answer should not queue behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.runtime.informer import Event, Informer
from kardinal.runtime.predicates import Predicate
from kardinal.runtime.queue import INITIAL_PRIORITY, PriorityQueue

__all__ = ["Channel", "Mapper", "Source", "Watch", "to_owner", "to_self"]

Mapper = Callable[[JsonObject], Iterable[Key]]


class Source(Protocol):
    """Something that puts keys on a controller's queue."""

    def attach(self, queue: PriorityQueue) -> None: ...


def to_self(obj: JsonObject) -> Iterable[Key]:
    """Return the object itself."""
    return (key_of(obj),)


def to_owner(resource: ResourceType, *, controller_only: bool = True) -> Mapper:
    """Return the owners of that kind, whatever their version; by default only the one that controls the object."""

    def owners(obj: JsonObject) -> Iterable[Key]:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "") if resource.namespaced else ""
        return [
            Key(namespace, reference["name"])
            for reference in metadata.get("ownerReferences") or ()
            if reference["kind"] == resource.kind
            and reference["apiVersion"].rpartition("/")[0] == resource.group
            and (reference.get("controller") or not controller_only)
        ]

    return owners


@dataclass(frozen=True, slots=True)
class Watch:
    """Changes of an informer's objects, mapped to keys; `when` lets only some of them through."""

    informer: Informer
    map: Mapper = to_self
    when: Predicate | None = None

    def attach(self, queue: PriorityQueue) -> None:
        def enqueue(event: Event) -> None:
            if self.when is not None and not self.when(event):
                return
            priority = INITIAL_PRIORITY if event.initial else 0
            for key in self._keys(event):
                queue.add(key, priority=priority)

        self.informer.on_event(enqueue)

    def _keys(self, event: Event) -> Iterable[Key]:
        old = self.map(event.old) if event.old is not None else ()
        new = self.map(event.new) if event.new is not None else ()
        return dict.fromkeys((*old, *new))


class Channel:
    """Keys pushed from elsewhere: a webhook, a poll, a file that changed."""

    def __init__(self) -> None:
        self._queues: list[PriorityQueue] = []

    def attach(self, queue: PriorityQueue) -> None:
        self._queues.append(queue)

    def push(self, key: Key) -> None:
        """Ask every controller of this channel for a run of `key`."""
        for queue in self._queues:
            queue.add(key)
