"""A live, indexed copy of a collection, and the events of its changes.

Decoding, storing and dispatching are one synchronous step: on a single thread that makes each change atomic, so a
handler always finds the store in the state its event speaks of and no buffer stands between them that could grow. In
return handlers must be quick; they map an object to keys and put those on a queue.

Handlers get no bookmarks and no duplicates. An object that was deleted and made again while no watch ran is two
events, never an update: the new one has another uid and owes nothing to the old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Reversible
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import structlog

from kardinal.kube import Client, KubeError
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.runtime.clock import Clock
from kardinal.runtime.logging import describe
from kardinal.runtime.metrics import InformerMetrics
from kardinal.runtime.reflector import Reflector, Scope
from kardinal.runtime.store import IndexFunction, Store

__all__ = ["Change", "Event", "Handler", "Informer", "Outage", "Projection"]

log = structlog.get_logger(__name__)


class Change(StrEnum):
    """The kind of change of an object."""

    ADDED = "ADDED"
    UPDATED = "UPDATED"
    DELETED = "DELETED"


class Event(NamedTuple):
    """One change. `initial`: it existed before we looked; `final_state_unknown`: a deletion noticed afterwards."""

    change: Change
    key: Key
    old: JsonObject | None
    new: JsonObject | None
    initial: bool = False
    final_state_unknown: bool = False


class Outage(NamedTuple):
    """Why a collection is not followed now, and since when."""

    error: KubeError
    since: datetime


Handler = Callable[[Event], None]

Projection = Callable[[JsonObject], JsonObject]
"""Returns the part of an object that is kept; its name, namespace, uid and revision must be in it."""


class Informer:
    """The shared copy of one scope, of each object what `projection` keeps. Objects must be treated as immutable.

    `on_state` is called when the copy is complete for the first time, and when an outage begins or ends.
    """

    def __init__(
        self,
        client: Client,
        scope: Scope,
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
        """Return whether the copy has been complete once and every handler has heard of it."""
        return self._synced.is_set()

    @property
    def backing_off(self) -> bool:
        """Return whether the connection is lost and waits for its next try."""
        return self._reflector.backing_off

    @property
    def outage(self) -> Outage | None:
        """Return why the collection is not followed now; None while it is."""
        return self._outage

    @property
    def resource_version(self) -> str:
        """The revision up to which everything in scope has been seen."""
        return self._resource_version

    def has_seen(self, revision: int) -> bool:
        """Return whether everything up to `revision` has been seen."""
        return self._resource_version.isdecimal() and int(self._resource_version) >= revision

    @property
    def revisions(self) -> dict[Key, str]:
        """The revision of each object held."""
        return {key: obj["metadata"]["resourceVersion"] for key, obj in self._store.items()}

    def get(self, namespace: str | None, name: str) -> JsonObject | None:
        """Return the object of that name; the namespace of a cluster-scoped kind is ignored."""
        return self._store.get(Key((namespace or "") if self.resource.namespaced else "", name))

    def by_index(self, name: str, value: str, *, limit: int | None = None) -> list[JsonObject]:
        return self._store.by_index(name, value, limit=limit)

    def filed(self, name: str, value: str) -> Reversible[JsonObject]:
        """Return what `by_index` does, from either end and no further than it is walked, which must be at once."""
        return self._store.filed(name, value)

    def list(self, namespace: str | None = None) -> list[JsonObject]:
        return self._store.list(namespace)

    def index(self, name: str, function: IndexFunction) -> None:
        """Make objects findable by the values of `function`."""
        self._store.add_index(name, function)

    def on_event(self, handler: Handler) -> None:
        """Call `handler` for every change. What is here already comes first, once, as initial additions."""
        self._handlers.append(handler)
        if self.synced:
            for key, obj in list(self._store.items()):
                self._call(handler, Event(Change.ADDED, key, None, obj, initial=True))

    async def run(self) -> None:
        """Keep the copy alive; ends only by cancellation."""
        await self._reflector.run()

    async def wait_synced(self) -> None:
        await self._synced.wait()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Suspend until `condition` holds; it is looked at again whenever the copy has moved on."""
        if condition():
            return
        woken = asyncio.get_running_loop().create_future()
        waiter = (condition, woken)
        self._waiters.append(waiter)
        try:
            await woken
        finally:
            self._waiters.remove(waiter)

    def replace(self, objects: dict[Key, JsonObject], revision: str) -> None:
        """Take over a whole state and tell the differences; part of the reflector's `Sink`."""
        before = dict(self._store.items())
        events: list[Event] = []
        for key, old in before.items():
            if key not in objects:
                events.append(Event(Change.DELETED, key, old, None, final_state_unknown=True))
        for key, new in objects.items():
            previous = before.get(key)
            if previous is not None and _revision(previous) == _revision(new):
                objects[key] = previous
            else:
                kept = objects[key] = self._kept(new)
                events.extend(_difference(key, previous, kept, initial=not self.synced))
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
        """Take over one change; part of the reflector's `Sink`."""
        key = key_of(obj)
        # Also when the object is unknown: a deletion carries the revision the next one is counted from.
        self._resource_version = _revision(obj)
        self._metrics.progressed()
        old = self._store.get(key)
        if change == "DELETED":
            if self._store.remove(key) is not None:
                self._dispatch(Event(Change.DELETED, key, self._kept(obj), None))
        elif old is None or _revision(old) != _revision(obj):
            kept = self._kept(obj)
            self._store.put(key, kept)
            for event in _difference(key, old, kept, initial=False):
                self._dispatch(event)
        self._wake()

    def advance(self, revision: str) -> None:
        """Move on without a change; part of the reflector's `Sink`."""
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
        ended, self._outage = self._outage is not None, None
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

    def _kept(self, obj: JsonObject) -> JsonObject:
        """Drop managedFields, which no reconciler reads and which is half of the memory, and what is not asked for."""
        obj["metadata"].pop("managedFields", None)
        return obj if self._projection is None else self._projection(obj)

    def _wake(self) -> None:
        for condition, woken in self._waiters:
            if not woken.done() and condition():
                woken.set_result(None)


def _difference(key: Key, old: JsonObject | None, new: JsonObject, *, initial: bool) -> list[Event]:
    if old is None:
        return [Event(Change.ADDED, key, None, new, initial=initial)]
    if old["metadata"].get("uid") != new["metadata"].get("uid"):
        return [
            Event(Change.DELETED, key, old, None, final_state_unknown=True),
            Event(Change.ADDED, key, None, new),
        ]
    return [Event(Change.UPDATED, key, old, new)]


def _revision(obj: JsonObject) -> str:
    revision: str = obj["metadata"]["resourceVersion"]
    return revision
