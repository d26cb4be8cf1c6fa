"""Keep the recent changes of the store, and pass them to those who follow it.

Every commit becomes one `Change`. The history keeps the last of them (bounded by bytes) so that a watch can resume
from a revision it has seen; older ones are gone and the answer is 410, after which clients list again. That is the
whole contract of a Kubernetes watch: in order, nothing twice, nothing missing, or an honest "expired".

A subscription is a queue, bounded by bytes as well. A reader that falls behind by more than its bound is closed
instead of being allowed to hold memory: it will list again, which costs less than an endless queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.storage.entries import Change

__all__ = ["History", "Subscription"]

HISTORY_BYTES = 32 * 1024 * 1024
QUEUE_BYTES = 16 * 1024 * 1024


class Subscription:
    """The changes of one resource, in order, until closed."""

    def __init__(self, resource: str, *, limit: int = QUEUE_BYTES) -> None:
        self.resource = resource
        self.closed = False
        self.overflowed = False
        self._limit = limit
        self._bytes = 0
        self._pending: deque[Change] = deque()
        self._ready = asyncio.Event()
        self._on_close: list[Callable[[], None]] = []

    def on_close(self, callback: Callable[[], None]) -> None:
        self._on_close.append(callback)

    @property
    def waiting(self) -> bool:
        """Whether changes are waiting to be taken."""
        return bool(self._pending)

    def offer(self, change: Change) -> None:
        self._bytes += change.weight
        if self._bytes > self._limit and self._pending:
            self.overflowed = True
            self.close()
            return
        self._pending.append(change)
        self._ready.set()

    async def take(self) -> list[Change]:
        """All pending changes; waits for the first, unless woken or closed."""
        await self._ready.wait()
        changes = list(self._pending)
        self._pending.clear()
        self._bytes = 0
        if not self.closed:
            self._ready.clear()
        return changes

    def wake(self) -> None:
        """Wake the reader that waits."""
        self._ready.set()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._ready.set()
        for callback in self._on_close:
            callback()


class History:
    """The ring of recent changes and the subscriptions that are fed from it."""

    def __init__(self, *, floor: int, limit: int = HISTORY_BYTES) -> None:
        self.floor = floor
        self._limit = limit
        self._bytes = 0
        self._changes: deque[Change] = deque()
        self._subscriptions: dict[str, set[Subscription]] = {}

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self._bytes += change.weight
        while self._bytes > self._limit and len(self._changes) > 1:
            oldest = self._changes.popleft()
            self._bytes -= oldest.weight
            self.floor = oldest.entry.revision
        for subscription in tuple(self._subscriptions.get(change.entry.resource, ())):
            subscription.offer(change)

    def since(self, resource: str, *, revision: int) -> list[Change]:
        """Every change of `resource` after `revision`; 410 when some of them may be forgotten."""
        if revision < self.floor:
            raise StatusError(410, "Expired", f"too old resource version: {revision} ({self.floor})")
        found: list[Change] = []
        for change in reversed(self._changes):
            if change.entry.revision <= revision:
                break
            if change.entry.resource == resource:
                found.append(change)
        found.reverse()
        return found

    def subscribe(self, resource: str) -> Subscription:
        subscription = Subscription(resource)
        self._subscriptions.setdefault(resource, set()).add(subscription)
        subscription.on_close(lambda: self._forget(subscription))
        return subscription

    def close(self, resource: str | None = None) -> None:
        """End the subscriptions of one resource (its kind is no longer served), or all of them."""
        for name, subscriptions in tuple(self._subscriptions.items()):
            if resource is None or name == resource:
                for subscription in tuple(subscriptions):
                    subscription.close()

    def _forget(self, subscription: Subscription) -> None:
        subscriptions = self._subscriptions.get(subscription.resource)
        if subscriptions is not None:
            subscriptions.discard(subscription)
            if not subscriptions:
                del self._subscriptions[subscription.resource]
