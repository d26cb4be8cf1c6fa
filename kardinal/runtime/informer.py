"""A live, indexed copy of a collection, and the events of its changes.

Decoding, storing and dispatching are one synchronous step. On a single thread this makes each change atomic, so a
handler always finds the store in the state of its event, and there is no buffer between them that could grow. In
return, handlers must be fast: they map an object to keys and put those on a queue.

Handlers receive no bookmarks and no duplicates. An object that was deleted and created again while no watch ran causes
two events, never an update, because the new object has another uid.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Reversible
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import structlog

from kardinal.clock import Clock
from kardinal.kube import Client, KubeError
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.runtime.logging import describe
from kardinal.runtime.metrics import InformerMetrics
from kardinal.runtime.reflector import Reflector, WatchScope
from kardinal.runtime.store import IndexFunction, Store

__all__ = ["ChangeKind", "Event", "Handler", "Informer", "Outage", "Projection"]

log = structlog.get_logger(__name__)


class ChangeKind(StrEnum):
    """The kind of change of an object."""

    ADDED = "ADDED"
    UPDATED = "UPDATED"
    DELETED = "DELETED"


class Event(NamedTuple):
    """One change.

    `initial`: the object existed before the start; `final_state_unknown`: the deletion was noticed later.
    """

    change: ChangeKind
    key: Key
    old: JsonObject | None
    new: JsonObject | None
    initial: bool = False
    final_state_unknown: bool = False


class Outage(NamedTuple):
    """The reason why a collection is currently not followed, and the start of the outage."""

    error: KubeError
    since: datetime


Handler = Callable[[Event], None]

Projection = Callable[[JsonObject], JsonObject]
"""Returns the part of an object to keep, which must include its name, namespace, uid and resourceVersion."""


class Informer:
    """The shared copy of one scope. `projection` selects the part of each object to keep.

    Objects must be treated as immutable. `on_state` is called when the copy is complete for the first time, and when an
    outage begins or ends.
    """

    def __init__(
        self,
        client: Client,
        scope: WatchScope,
        *,
        clock: Clock,
        metrics: InformerMetrics,
        projection: Projection | None = None,
        on_state: Callable[[], None] | None = None,
    ) -> None:
        self._scope = scope
        self._clock = clock
        self._metrics = metrics
        self._projection = projection
        self._on_state = on_state
        self._store = Store()
        self._handlers: list[Handler] = []
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._synced = asyncio.Event()
        self._resource_version = ""
        self._outage: Outage | None = None
        self._reflector = Reflector(client, scope, self, clock=clock, interrupted=metrics.interrupted)
        metrics.watch_objects(lambda: len(self._store))

    @property
    def resource(self) -> ResourceType:
        return self._scope.resource

    @property
    def namespace(self) -> str | None:
        return self._scope.namespace

    @property
    def labels(self) -> str | None:
        return self._scope.labels

    @property
    def fields(self) -> str | None:
        return self._scope.fields

    @property
    def synced(self) -> bool:
        """Return whether the copy has been complete once and every handler has received its events."""
        return self._synced.is_set()

    @property
    def backing_off(self) -> bool:
        """Return whether the connection is lost and waits before the next try."""
        return self._reflector.backing_off

    @property
    def outage(self) -> Outage | None:
        """The reason why the collection is currently not followed; None if it is followed."""
        return self._outage

    @property
    def resource_version(self) -> str:
        """The revision up to which all changes in scope have been seen."""
        return self._resource_version

    def has_seen(self, revision: int) -> bool:
        """Return whether all changes up to `revision` have been seen."""
        return self._resource_version.isdecimal() and int(self._resource_version) >= revision

    @property
    def revisions(self) -> dict[Key, str]:
        """The resourceVersion of each object in the store."""
        return {key: obj["metadata"]["resourceVersion"] for key, obj in self._store.items()}

    def get(self, namespace: str | None, name: str) -> JsonObject | None:
        """Return the object with this name; the namespace of a cluster-scoped kind is ignored."""
        return self._store.get(Key((namespace or "") if self.resource.namespaced else "", name))

    def by_index(self, name: str, value: str, *, limit: int | None = None) -> list[JsonObject]:
        return self._store.by_index(name, value, limit=limit)

    def filed(self, name: str, value: str) -> Reversible[JsonObject]:
        """Return the objects of `by_index` lazily and in either direction; iterate without awaiting in between."""
        return self._store.filed(name, value)

    def list(self, namespace: str | None = None) -> list[JsonObject]:
        return self._store.list(namespace)

    def indexed(self, name: str) -> bool:
        """Return whether there is an index of this name."""
        return self._store.indexed(name)

    def index(self, name: str, function: IndexFunction) -> None:
        """Index objects by the values that `function` returns."""
        self._store.add_index(name, function)

    def on_event(self, handler: Handler) -> None:
        """Call `handler` for every change.

        Objects that exist already are reported first, once, as initial additions.
        """
        self._handlers.append(handler)
        if self.synced:
            for key, obj in list(self._store.items()):
                self._call(handler, Event(ChangeKind.ADDED, key, None, obj, initial=True))

    async def run(self) -> None:
        """Keep the copy up to date; ends only by cancellation."""
        await self._reflector.run()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Suspend until `condition` is true; it is evaluated again after every change of the copy."""
        if condition():
            return
        woken = asyncio.get_running_loop().create_future()
        waiter = (condition, woken)
        self._waiters.append(waiter)
        try:
            await woken
        finally:
            self._waiters.remove(waiter)

    def kept(self, obj: JsonObject) -> JsonObject:
        """Remove managedFields, which no reconciler reads and which take half the memory, and apply the projection.

        Part of the reflector's `Sink`.
        """
        obj["metadata"].pop("managedFields", None)
        return obj if self._projection is None else self._projection(obj)

    def replace(self, objects: dict[Key, JsonObject], revision: str) -> None:
        """Replace the whole state and dispatch the differences; part of the reflector's `Sink`."""
        before = dict(self._store.items())
        events: list[Event] = []
        for key, old in before.items():
            if key not in objects:
                events.append(Event(ChangeKind.DELETED, key, old, None, final_state_unknown=True))
        for key, new in objects.items():
            previous = before.get(key)
            if previous is not None and _revision(previous) == _revision(new):
                objects[key] = previous
            else:
                events.extend(_difference(key, previous, new, initial=not self.synced))
        self._store.replace(objects)
        self._resource_version = revision
        self._metrics.progressed()
        for event in events:
            self._dispatch(event)
        first = not self.synced
        self._synced.set()
        self._wake()
        self._end_outage(news=first)

    def apply(self, change: str, obj: JsonObject) -> None:
        """Apply one change; part of the reflector's `Sink`."""
        key = key_of(obj)
        # Also for an unknown object, because a deletion has the revision from which the next watch continues.
        self._resource_version = _revision(obj)
        self._metrics.progressed()
        old = self._store.get(key)
        if change == "DELETED":
            if self._store.remove(key) is not None:
                self._dispatch(Event(ChangeKind.DELETED, key, self.kept(obj), None))
        elif old is None or _revision(old) != _revision(obj):
            kept = self.kept(obj)
            _share_spec(old, kept)
            self._store.put(key, kept)
            for event in _difference(key, old, kept, initial=False):
                self._dispatch(event)
        self._wake()

    def advance(self, revision: str) -> None:
        """Note a new revision without a change; part of the reflector's `Sink`."""
        self._resource_version = revision
        self._metrics.progressed()
        self._wake()

    def lost(self, error: KubeError) -> None:
        """Note an outage; part of the reflector's `Sink`."""
        began = self._outage is None
        self._outage = Outage(error, self._outage.since if self._outage else self._clock.now())
        if began and self._on_state is not None:
            self._on_state()

    def resumed(self) -> None:
        """Note the end of an outage; part of the reflector's `Sink`."""
        self._end_outage()

    def _end_outage(self, *, news: bool = False) -> None:
        ended = self._outage is not None
        self._outage = None
        if (ended or news) and self._on_state is not None:
            self._on_state()

    def _dispatch(self, event: Event) -> None:
        for handler in self._handlers:
            self._call(handler, event)

    def _call(self, handler: Handler, event: Event) -> None:
        try:
            handler(event)
        except Exception as error:
            self._metrics.handler_failed()
            log.error("an event handler failed", kind=self.resource.kind, key=str(event.key), **describe(error))

    def _wake(self) -> None:
        for condition, woken in self._waiters:
            if not woken.done() and condition():
                woken.set_result(None)


def _difference(key: Key, old: JsonObject | None, new: JsonObject, *, initial: bool) -> list[Event]:
    if old is None:
        return [Event(ChangeKind.ADDED, key, None, new, initial=initial)]
    if old["metadata"].get("uid") != new["metadata"].get("uid"):
        return [
            Event(ChangeKind.DELETED, key, old, None, final_state_unknown=True),
            Event(ChangeKind.ADDED, key, None, new),
        ]
    return [Event(ChangeKind.UPDATED, key, old, new)]


def _share_spec(old: JsonObject | None, new: JsonObject) -> None:
    """Let a changed object have the spec of the old one if it is the same: compiled Graphs go on holding theirs.

    Otherwise each write of a status would leave one more copy of the spec in memory. Equal is not the same, since 1
    equals true: the generation must be the same, too.
    """
    generation = new["metadata"].get("generation")
    if old is None or generation is None or old["metadata"].get("generation") != generation:
        return
    if "spec" in new and old.get("spec") == new["spec"]:
        new["spec"] = old["spec"]


def _revision(obj: JsonObject) -> str:
    revision: str = obj["metadata"]["resourceVersion"]
    return revision
