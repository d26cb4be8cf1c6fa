"""The Graphs that must be walked again when an object changes: those that own it, read it or select it.

A change is looked up in indexes, so that it costs the same beside five Graphs and beside five thousand. An object that
a Graph reads is indexed by its key, and a selection under one of the labels that all its objects have: the label under
which the fewest other selections are indexed.

A Graph is not walked again for the watch event of its own write (`kardinal.runtime.own_writes`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, TypeVar

from kardinal.graph.identity import ObjectKey, object_key
from kardinal.graph.selection import Selection
from kardinal.graph.walk_types import Seen
from kardinal.objects import GRAPH, JsonObject, Key, ResourceType, labels_of
from kardinal.runtime import Event, Informer, KeyMemory, to_owner
from kardinal.runtime.own_writes import ObjectWrite, OwnWrites
from kardinal.runtime.queue import INITIAL_PRIORITY, PriorityQueue

__all__ = ["Interests"]

_Entry = TypeVar("_Entry", bound=Hashable)

_OWNERS: Final = to_owner(GRAPH, controller_only=False)

_Shelf = tuple[ResourceType, str | None, tuple[str, str] | None]
"""A kind, a namespace, and a label that all objects of the selections there have."""


class Interests:
    """Implements `Source` for the controller of Graphs: changes of the objects that Graphs own, read or select."""

    def __init__(self, memory: KeyMemory) -> None:
        self._reads: dict[ObjectKey, set[Key]] = {}
        self._selections: dict[_Shelf, dict[Selection, set[Key]]] = {}
        self._shelves: dict[Selection, _Shelf] = {}
        self._seen: dict[Key, Seen] = {}
        self._own = OwnWrites[ObjectKey](memory, push=self.push)
        self._queues: list[PriorityQueue] = []
        memory.on_drop(self._forget)

    # Events.

    def attach(self, queue: PriorityQueue) -> None:
        self._queues.append(queue)

    def follow(self, informer: Informer) -> None:
        """Hear of every change of the objects of a declared informer."""
        informer.on_event(partial(self.heard, informer.resource))

    def heard(self, resource: ResourceType, event: Event) -> None:
        """Put the Graphs that an event concerns on the queue."""
        priority = INITIAL_PRIORITY if event.initial else 0
        for graph in self.concerned(resource, event):
            self.push(graph, priority=priority)

    def push(self, graph: Key, *, priority: int = 0) -> None:
        for queue in self._queues:
            queue.add(graph, priority=priority)

    def concerned(self, resource: ResourceType, event: Event) -> list[Key]:
        """Return the Graphs that have to be walked again because of a change."""
        states = [obj for obj in (event.old, event.new) if obj is not None]
        graphs = dict.fromkeys(graph for obj in states for graph in self._graphs_of(resource, obj))
        if event.new is None:
            return list(graphs)
        key = object_key(resource, event.new)
        revision = _revision(event.new)
        return [graph for graph in graphs if not self._own.is_own(graph, key, revision)]

    def _graphs_of(self, resource: ResourceType, obj: JsonObject) -> Iterable[Key]:
        key = object_key(resource, obj)
        yield from _OWNERS(obj)
        yield from self._reads.get(key, ())
        for namespace in dict.fromkeys((key.namespace, None)):
            for label in (None, *labels_of(obj).items()):
                for selection, graphs in self._selections.get((resource, namespace, label), {}).items():
                    if selection.matches(obj):
                        yield from graphs

    def writing(self, graph: Key, key: ObjectKey) -> AbstractContextManager[ObjectWrite]:
        """Write to an object for a Graph; the answer is given to `ObjectWrite.answered`."""
        return self._own.writing(graph, key)

    # The interests of a Graph, as of its last walk.

    def note(self, graph: Key, seen: Seen) -> None:
        """Replace the interests of `graph` by the objects and selections that a walk has read."""
        before = self._seen.get(graph, _NOTHING)
        self._seen[graph] = seen
        for key in before.reads - seen.reads:
            _discard(self._reads, key, graph)
        for key in seen.reads - before.reads:
            self._reads.setdefault(key, set()).add(graph)
        for selection in before.selections - seen.selections:
            self._deselect(selection, graph)
        for selection in seen.selections - before.selections:
            shelf = self._shelves.get(selection) or self._emptiest_shelf(selection)
            self._shelves[selection] = shelf
            self._selections.setdefault(shelf, {}).setdefault(selection, set()).add(graph)

    def add(self, graph: Key, seen: Seen) -> None:
        """Add what a walk has read so far, before it pauses: nearly always the last walk has read it, too."""
        before = self._seen.get(graph, _NOTHING)
        self.note(graph, Seen(before.reads | seen.reads, before.selections | seen.selections))

    def _emptiest_shelf(self, selection: Selection) -> _Shelf:
        shelves = [(selection.resource, selection.namespace, label) for label in selection.labels or (None,)]
        return min(shelves, key=lambda shelf: len(self._selections.get(shelf, ())))

    def _deselect(self, selection: Selection, graph: Key) -> None:
        shelf = self._shelves[selection]
        _discard(self._selections[shelf], selection, graph)
        if selection not in self._selections[shelf]:
            del self._shelves[selection]
        if not self._selections[shelf]:
            del self._selections[shelf]

    def _forget(self, graph: Key) -> None:
        self.note(graph, _NOTHING)
        del self._seen[graph]


_NOTHING: Final = Seen(frozenset(), frozenset())


def _discard(index: dict[_Entry, set[Key]], entry: _Entry, graph: Key) -> None:
    graphs = index[entry]
    graphs.discard(graph)
    if not graphs:
        del index[entry]


def _revision(obj: JsonObject) -> int:
    return int(obj["metadata"]["resourceVersion"])
