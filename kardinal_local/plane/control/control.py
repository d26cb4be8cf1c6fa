"""Run the controllers of the plane on the objects that each commit concerns.

Level-triggered work on keys: a commit says which objects to look at, one task looks at them one after the other and
makes at most the writes that are missing, through the same rules as a client's.

Two moments are easy to miss: when a dependent disappears its *owner* has to be looked at again (it may be waiting in a
foreground deletion), and when any object disappears, so have its namespace and its definition.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import islice

from kardinal_local.plane.builtin import CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.control.accounts import ACCOUNTS, DEFAULT_ACCOUNT, Accounts
from kardinal_local.plane.control.aggregation import CLUSTER_ROLES, Aggregation
from kardinal_local.plane.control.collector import Collector
from kardinal_local.plane.control.definitions import Definitions
from kardinal_local.plane.control.expiry import Expiry
from kardinal_local.plane.control.namespaces import Namespaces
from kardinal_local.plane.errors import StorageFailed
from kardinal_local.plane.kinds import Registry
from kardinal_local.plane.objects import Deletion, Objects, is_terminating
from kardinal_local.plane.storage import Change, Entry, Store

__all__ = ["Control"]

PORTION = 8
FAILURE_PAUSE = 1.0
"""Seconds until another look at what could not be stored."""

_log = logging.getLogger(__name__)
_WATCHED = frozenset({NAMESPACE.storage, CUSTOM_RESOURCE_DEFINITION.storage})
_Key = tuple[str, str, str]  # storage, namespace, name


class Control:
    """The housekeeping task of one plane."""

    def __init__(self, store: Store, *, registry: Registry, objects: Objects, deletion: Deletion, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._registry = registry
        self._collector = Collector(store, registry=registry, deletion=deletion, look_at=self._push)
        self._accounts = Accounts(store, registry=registry, objects=objects)
        self._aggregation = Aggregation(store, registry=registry, objects=objects)
        self._namespaces = Namespaces(store, registry=registry, deletion=deletion, clock=clock)
        self._definitions = Definitions(store, registry=registry, deletion=deletion, clock=clock)
        self._expiry = Expiry(store, clock=clock)
        self._pending: dict[_Key, None] = {}
        self._settling = False
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether every commit so far has been looked at."""
        return not self._pending and not self._settling

    def start(self) -> None:
        """Take up what an earlier process may have left undone, then follow the commits."""
        self._store.committed.listen(self._observe)
        self._definitions.load()
        self._expiry.load()
        for storage in self._store.resources():
            for entry in self._store.entries(storage):
                self._consider(entry)
        for role in self._aggregation.affected():
            self._push(role)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="localplane-control")

    async def stop(self) -> None:
        self._expiry.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _observe(self, change: Change) -> None:
        self._definitions.observe(change)
        self._expiry.observe(change)
        entry = change.entry
        if entry.resource == CUSTOM_RESOURCE_DEFINITION.storage:
            for sibling in self._definitions.siblings(entry):
                self._push(sibling)
        if entry.resource == CLUSTER_ROLES:
            for role in self._aggregation.affected():
                self._push(role)
        if change.type != "DELETED":
            self._consider(entry)
            return
        for dependent in self._store.dependents(entry.uid):
            self._push(dependent)
        for uid in entry.owners:
            if (owner := self._store.with_uid(uid)) is not None:
                self._push(owner)
        if entry.resource == ACCOUNTS and entry.name == DEFAULT_ACCOUNT:
            namespace = self._store.get(NAMESPACE.storage, namespace="", name=entry.namespace)
            if namespace is not None:
                self._push(namespace)
        self._push_if_terminating(NAMESPACE.storage, entry.namespace)
        self._push_if_terminating(CUSTOM_RESOURCE_DEFINITION.storage, entry.resource)

    def _consider(self, entry: Entry) -> None:
        if entry.owners or entry.resource in _WATCHED or is_terminating(entry):
            self._push(entry)

    def _push_if_terminating(self, storage: str, name: str) -> None:
        entry = self._store.get(storage, namespace="", name=name)
        if entry is not None and is_terminating(entry):
            self._push(entry)

    def _push(self, entry: Entry) -> None:
        self._pending[(entry.resource, entry.namespace, entry.name)] = None
        self._ready.set()

    async def _run(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            while self._pending:
                keys = tuple(islice(self._pending, PORTION))
                try:
                    await self._look_at(keys)
                except StorageFailed:
                    # No later commit would bring these up again.
                    self._pending.update(dict.fromkeys(keys))
                    await self._clock.sleep(FAILURE_PAUSE)
                # Requests come first: a large teardown must not hold the event loop.
                await asyncio.sleep(0)

    async def _look_at(self, keys: Iterable[_Key]) -> None:
        self._settling = True
        try:
            for key in keys:
                del self._pending[key]
                self._attempt(key)
            await self._store.settled()
        finally:
            self._settling = False

    def _attempt(self, key: _Key) -> None:
        try:
            self._reconcile(key)
        except StorageFailed:
            raise
        except Exception:
            _log.exception("housekeeping failed: %s %s", key[0], f"{key[1]}/{key[2]}" if key[1] else key[2])

    def _reconcile(self, key: _Key) -> None:
        storage, namespace, name = key
        kind = self._registry.stored(storage)
        entry = self._store.get(storage, namespace=namespace, name=name)
        if kind is None or entry is None:
            return
        self._collector.reconcile(kind, entry)
        entry = self._store.get(storage, namespace=namespace, name=name)
        if entry is None:
            return
        if kind is NAMESPACE:
            self._accounts.reconcile(entry)
            self._namespaces.reconcile(entry)
        elif entry.resource == CLUSTER_ROLES:
            self._aggregation.reconcile(entry)
        elif kind is CUSTOM_RESOURCE_DEFINITION:
            self._definitions.reconcile(entry)
