"""The sources of a controller: changes of objects, and keys that are pushed.

A `Watch` maps each changed object to the keys that it concerns. An update maps the old and the new state, because an
object that changes its owner concerns both owners. Objects that existed before the start have low priority: after a
restart all of them are reconciled, and a person who waits for an answer should not wait for that.
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
    """A source of keys for the queue of a controller."""

    def attach(self, queue: PriorityQueue) -> None: ...


def to_self(obj: JsonObject) -> Iterable[Key]:
    """Return the key of the object itself."""
    return (key_of(obj),)


def to_owner(resource: ResourceType, *, controller_only: bool = True) -> Mapper:
    """Return a mapper to the owners of this kind, in any version; by default only the owner that is the controller."""

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
    """Changes of an informer's objects, mapped to keys. `when` selects the changes; defaults to all."""

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
    """Keys that are pushed by other parts: a webhook, a poll, a file that changed."""

    def __init__(self) -> None:
        self._queues: list[PriorityQueue] = []

    def attach(self, queue: PriorityQueue) -> None:
        self._queues.append(queue)

    def push(self, key: Key) -> None:
        """Request a run of `key` from every controller of this channel."""
        for queue in self._queues:
            queue.add(key)
