"""Being woken without asking: who waits for a merge is subscribed to the repository it would happen in.

A wake says that another look is worth it and nothing else. Subscriptions are caches: a process that starts looks at
every waiting promotion once and subscribes again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from kardinal.git import Subscription
from kardinal.objects import Key
from kardinal.runtime import Channel, Clock

__all__ = ["MergeWakes", "Pace"]


class MergeWakes:
    """The subscriptions of the promotions that wait for a merge."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._subscriptions: dict[Key, Subscription] = {}

    def watch(self, key: Key, subscribe: Callable[[Callable[[], None]], Subscription]) -> None:
        """Wake `key` from now on; once is enough."""
        if key not in self._subscriptions:
            self._subscriptions[key] = subscribe(lambda: self._channel.push(key))

    def release(self, key: Key) -> None:
        subscription = self._subscriptions.pop(key, None)
        if subscription is not None:
            subscription.close()

    def close(self) -> None:
        for key in list(self._subscriptions):
            self.release(key)


class Pace:
    """How soon a message that only tells of progress may be written again.

    A rollout changes its Deployment many times a second; a person reads its progress every few seconds, and every write
    wakes everyone who watches.
    """

    def __init__(self, interval: timedelta, *, clock: Clock) -> None:
        self._interval = interval.total_seconds()
        self._clock = clock
        self._written: dict[Key, float] = {}

    def wait(self, key: Key) -> timedelta:
        """How long `key` must still be patient; nothing when it may write."""
        left = self._written.get(key, -self._interval) + self._interval - self._clock.monotonic()
        return timedelta(seconds=max(left, 0.0))

    def note(self, key: Key) -> None:
        self._written[key] = self._clock.monotonic()

    def forget(self, key: Key) -> None:
        self._written.pop(key, None)
