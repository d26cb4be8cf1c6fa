"""Waking those who wait for a local repository (promotion.md, *Local repositories*).

Nobody tells us when another process moves a reference, so the loose references and `packed-refs` are stat'ed four
times a second: no file is read, no object opened, and only while somebody is subscribed. A wake says "look again"
and nothing else.

What the first look finds is the baseline. A change that fell between subscribing and that look would go unnoticed,
so a watcher that begins wakes once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable

from kardinal.git.errors import GitError
from kardinal.git.runner import GitRunner, off_loop
from kardinal.runtime.clock import Clock, Timer

__all__ = ["RefWatcher"]

_INTERVAL = 0.25
"""Seconds between two looks: soon enough for a person who has just merged."""

Stamp = frozenset[tuple[str, int, int, int]]


class _Subscription:
    def __init__(self, watcher: RefWatcher, callback: Callable[[], None]) -> None:
        self._watcher = watcher
        self.callback = callback

    def close(self) -> None:
        self._watcher.unsubscribe(self)


class RefWatcher:
    """Looks at the references of one repository while anybody is interested."""

    def __init__(self, places: Callable[[], Iterable[str]], *, runner: GitRunner, clock: Clock) -> None:
        self._places = places
        self._runner = runner
        self._clock = clock
        self._subscriptions: list[_Subscription] = []
        self._seen: Stamp | None = None
        self._timer: Timer | None = None
        self._look: asyncio.Task[None] | None = None

    def subscribe(self, callback: Callable[[], None]) -> _Subscription:
        subscription = _Subscription(self, callback)
        self._subscriptions.append(subscription)
        if len(self._subscriptions) == 1:
            self._seen = None
            self._begin()
        return subscription

    def unsubscribe(self, subscription: _Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
        if not self._subscriptions and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        """End every subscription and wait for the look under way."""
        for subscription in list(self._subscriptions):
            self.unsubscribe(subscription)
        if self._look is not None:
            await self._look

    def _begin(self) -> None:
        self._timer = None
        if self._look is None:
            self._look = asyncio.create_task(self._look_once(), name="git watcher")

    async def _look_once(self) -> None:
        try:
            stamp = await self._runner.run(_stamp, self._places)
        except (OSError, GitError):
            # The repository is gone or not there yet: its return is a change too.
            stamp = frozenset()
        finally:
            self._look = None
        if not self._subscriptions:
            return
        changed, self._seen = stamp != self._seen, stamp
        self._timer = self._clock.call_later(_INTERVAL, self._begin)
        if changed:
            for subscription in list(self._subscriptions):
                subscription.callback()


@off_loop
def _stamp(places: Callable[[], Iterable[str]]) -> Stamp:
    return frozenset(_files(places()))


def _files(places: Iterable[str]) -> Iterable[tuple[str, int, int, int]]:
    for place in places:
        yield from _described(place)
        for directory, _, files in os.walk(place):
            for file in files:
                yield from _described(os.path.join(directory, file))


def _described(path: str) -> Iterable[tuple[str, int, int, int]]:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    yield path, status.st_mtime_ns, status.st_ino, status.st_size
