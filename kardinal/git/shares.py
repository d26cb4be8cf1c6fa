"""Slots that many want, given out so that no one takes those of all.

A host gets at most three quarters of them and a namespace a quarter, so a host that answers slowly, or a namespace that
asks for much, leaves room for the others. A slot that becomes free goes to the namespace that holds the fewest, and in
it to the one that has waited longest. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Lane", "Shares"]


class Lane(NamedTuple):
    """The host that is to be talked to, and the namespace that this is for."""

    host: str
    owner: str


class _Subscription:
    """A wish to be told when a slot of a lane may be free."""

    def __init__(self, shares: Shares, lane: Lane, callback: Callable[[], None]) -> None:
        self._shares = shares
        self.lane = lane
        self.callback = callback

    def close(self) -> None:
        self._shares.forget(self)


class Shares:
    """A number of slots."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._per_host = max(total * 3 // 4, 1)
        self._per_owner = max(total // 4, 1)
        self._hosts: Counter[str] = Counter()
        self._owners: Counter[str] = Counter()
        self._queue: list[tuple[Lane, asyncio.Future[None]]] = []
        self._subscriptions: list[_Subscription] = []

    @property
    def waiting(self) -> int:
        """Return how many wait in `acquire`."""
        return len(self._queue)

    def take(self, lane: Lane) -> bool:
        """Take a slot if there is one for the lane."""
        free = self._fits(lane)
        if free:
            self._hosts[lane.host] += 1
            self._owners[lane.owner] += 1
        return free

    async def acquire(self, lane: Lane) -> None:
        """Take a slot as soon as there is one for the lane."""
        if self.take(lane):
            return
        granted = asyncio.get_running_loop().create_future()
        self._queue.append((lane, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.give_back(lane)
            else:
                self._queue.remove((lane, granted))
            raise

    def give_back(self, lane: Lane) -> None:
        """Return a slot, which goes to whom it is due."""
        for counter, key in ((self._hosts, lane.host), (self._owners, lane.owner)):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]
        for waiting in sorted(self._queue, key=lambda pair: self._owners[pair[0].owner]):
            if not waiting[1].done() and self.take(waiting[0]):
                self._queue.remove(waiting)
                waiting[1].set_result(None)
        due = next((one for one in sorted(self._subscriptions, key=self._held_by) if self._fits(one.lane)), None)
        if due is not None:
            # Told once a round: it may not come, and the next one must not wait for it.
            self._subscriptions.remove(due)
            self._subscriptions.append(due)
            due.callback()

    def ahead(self, lane: Lane) -> int:
        """Return how many hold the slots that keep the lane waiting."""
        if self._owners[lane.owner] >= self._per_owner:
            return self._owners[lane.owner]
        return self._hosts[lane.host] if self._hosts[lane.host] >= self._per_host else self._owners.total()

    def subscribe(self, lane: Lane, callback: Callable[[], None]) -> _Subscription:
        """Call back, until the subscription is closed, when a slot for the lane may be free."""
        subscription = _Subscription(self, lane, callback)
        self._subscriptions.append(subscription)
        return subscription

    def forget(self, subscription: _Subscription) -> None:
        """End a subscription."""
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)

    def _held_by(self, subscription: _Subscription) -> int:
        return self._owners[subscription.lane.owner]

    def _fits(self, lane: Lane) -> bool:
        return (
            self._owners.total() < self._total
            and self._hosts[lane.host] < self._per_host
            and self._owners[lane.owner] < self._per_owner
        )
