"""Slots for transfers, shared out such that no host and no namespace can take all of them.

A host gets at most three quarters of the slots and a namespace a quarter, so a host that answers slowly, or a namespace
with many requests, leaves room for others. A free slot goes to the waiting namespace with the fewest slots, and within
it to the request that has waited longest. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Lane", "Shares"]


class Lane(NamedTuple):
    """The host of a transfer, and the namespace that it is for."""

    host: str
    owner: str


class _Subscription:
    """A callback for when a slot of a lane may be free."""

    def __init__(self, shares: Shares, lane: Lane, callback: Callable[[], None]) -> None:
        self._shares = shares
        self.lane = lane
        self.callback = callback

    def close(self) -> None:
        self._shares.forget(self)


class Shares:
    """The slots for transfers, with limits per host and per namespace."""

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
        """Return the number of requests that wait in `acquire`."""
        return len(self._queue)

    def take(self, lane: Lane) -> bool:
        """Take a slot if one is free for the lane; return whether it was taken."""
        free = self._fits(lane)
        if free:
            self._hosts[lane.host] += 1
            self._owners[lane.owner] += 1
        return free

    async def acquire(self, lane: Lane) -> None:
        """Take a slot as soon as one is free for the lane."""
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
        """Give back a slot, and pass it on to the next request in order."""
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
            # Called at most once per round: the subscriber may not take the slot, and others must not wait for it.
            self._subscriptions.remove(due)
            self._subscriptions.append(due)
            due.callback()

    def ahead(self, lane: Lane) -> int:
        """Return the number of slots in use that keep the lane waiting."""
        if self._owners[lane.owner] >= self._per_owner:
            return self._owners[lane.owner]
        return self._hosts[lane.host] if self._hosts[lane.host] >= self._per_host else self._owners.total()

    def subscribe(self, lane: Lane, callback: Callable[[], None]) -> _Subscription:
        """Call `callback`, until the subscription is closed, when a slot for the lane may be free."""
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
