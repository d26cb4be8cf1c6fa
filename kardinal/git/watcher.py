"""Wake subscribers when a reference of a local repository may have moved.

Another process that moves a reference does not announce it. The operating system reports which directories changed;
then `stat` is called on the loose references and on `packed-refs`. No file is read, no object opened, and nothing
happens without a subscription. A wake only means that the subscriber should look again.

The first look sets the baseline. A change between the subscription and that look would not be noticed, so a new watcher
wakes its subscribers once. The directories found by a look are watched after it, and changes in between are found by
the look that follows when watching has begun.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from kardinal.clock import Clock, Timer
from kardinal.git import file_events
from kardinal.git.file_events import Interest, Names
from kardinal.git.runner import GitRunner
from kardinal.processes.threads import off_loop

__all__ = ["Look", "RefWatcher", "RepositoryPlace", "look"]

_INTERVAL = 30.0
"""The interval in seconds at which references are checked without an event, because network file systems send none."""
_HEAD_OF_REPOSITORY = frozenset({".git", "HEAD", "objects", "refs"})
"""The entries that make a directory a repository."""

Stamp = frozenset[tuple[str, int, int, int]]


@dataclass(frozen=True, slots=True)
class RepositoryPlace:
    """The path of a repository's URL, and its Git directory once that exists."""

    path: str
    directory: str | None


@dataclass(slots=True)
class Look:
    """The result of a look: the state of the references, and the directories that will show the next change."""

    stamp: Stamp = frozenset()
    directories: dict[str, Names] = field(default_factory=dict)

    def require(self, path: str) -> None:
        """Watch for `path` to appear, change or disappear, in the nearest existing directory above it."""
        parent, name = os.path.split(path)
        while not os.path.isdir(parent):
            parent, name = os.path.split(parent)
        self.add(parent, frozenset({name}))

    def add(self, directory: str, names: Names) -> None:
        """Watch for `names` in `directory`."""
        # Events name the real path.
        directory = os.path.realpath(directory)
        known = self.directories.get(directory, frozenset())
        self.directories[directory] = None if names is None or known is None else names | known


class _Subscription:
    def __init__(self, watcher: RefWatcher, callback: Callable[[], None]) -> None:
        self._watcher = watcher
        self.callback = callback

    def close(self) -> None:
        self._watcher.unsubscribe(self)


class RefWatcher:
    """Check the references of one repository while there are subscriptions."""

    def __init__(self, place: Callable[[], RepositoryPlace], *, runner: GitRunner, clock: Clock) -> None:
        self.place = place
        self.seen: Stamp | None = None
        self._runner = runner
        self._clock = clock
        self._subscriptions: list[_Subscription] = []
        self._interest: Interest | None = None
        self._timer: Timer | None = None
        self._look: asyncio.Task[None] | None = None
        self._again = False

    def subscribe(self, callback: Callable[[], None]) -> _Subscription:
        subscription = _Subscription(self, callback)
        self._subscriptions.append(subscription)
        if len(self._subscriptions) == 1:
            self.seen = None
            self.changed()
        return subscription

    def unsubscribe(self, subscription: _Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
        if not self._subscriptions:
            self._stop()

    async def close(self) -> None:
        """End every subscription and wait for the current look."""
        self._subscriptions.clear()
        self._stop()
        if self._look is not None:
            await self._look

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._interest is not None:
            file_events.FILE_EVENTS.remove(self._interest)
            self._interest = None

    def changed(self) -> None:
        """Look again, because a watched directory changed, or watching has just begun."""
        # The current look may have missed the change.
        self._again = self._look is not None
        if self._look is None and self._subscriptions:
            self._look = asyncio.create_task(self._look_until_seen(), name="git watcher")

    async def _look_until_seen(self) -> None:
        try:
            await self._look_once()
            while self._again:
                self._again = False
                await self._look_once()
        finally:
            self._look = None

    async def _look_once(self) -> None:
        found = await self._runner.run(look, self.place)
        if not self._subscriptions:
            return
        changed = found.stamp != self.seen
        self.seen = found.stamp
        self._watch(found)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(_INTERVAL, self.changed)
        if changed:
            for subscription in list(self._subscriptions):
                subscription.callback()

    def _watch(self, found: Look) -> None:
        before = self._interest
        if before is None or before.directories != found.directories:
            self._interest = Interest(found.directories, self, asyncio.get_running_loop())
            file_events.FILE_EVENTS.add(self._interest, instead_of=before)


@off_loop
def look(place: Callable[[], RepositoryPlace]) -> Look:
    """Look at the references of the repository at a place, which need not exist."""
    where = place()
    found = Look()
    found.require(where.path)
    if where.directory is None:
        if os.path.isdir(where.path):
            found.add(where.path, _HEAD_OF_REPOSITORY)
        return found
    references = os.path.join(where.directory, "refs")
    packed = os.path.join(where.directory, "packed-refs")
    for path in (where.directory, references, packed):
        found.require(path)
    found.stamp = frozenset([*_stamped(packed), *_walked(references, found)])
    return found


def _walked(references: str, found: Look) -> Iterator[tuple[str, int, int, int]]:
    """Return the state of the references below a directory, and watch their directories."""
    for directory, _, files in os.walk(references):
        if directory == references:
            # An empty directory still differs from a missing one, and from another one.
            yield from ((path, 0, inode, 0) for path, _, inode, _ in _stamped(directory))
        found.add(directory, None)
        for file in files:
            if not file.endswith(".lock"):
                yield from _stamped(os.path.join(directory, file))


def _stamped(path: str) -> Iterator[tuple[str, int, int, int]]:
    with suppress(OSError):
        status = os.stat(path)
        yield path, status.st_mtime_ns, status.st_ino, status.st_size
