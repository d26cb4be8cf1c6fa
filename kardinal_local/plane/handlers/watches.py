"""Serve watches: stream the changes of a selection of objects.

A watch starts from a revision (replayed from the history), or from the state of now (told as ADDED events), and then
follows every commit in order. What it sends are changes of its *selection*: an object that stops matching is DELETED
for this watcher, one that starts matching is ADDED, whatever happened to it.

Its deadlines are those of the network, in real time: a test that stops its clock must not stop the bookmarks.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterable

import orjson

from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.objects import ListOptions, Lists, Selector, parse_revision
from kardinal_local.plane.statuses import failure
from kardinal_local.plane.storage import Change, Committed, Entry, Subscription, make_entry
from kardinal_local.plane.wire import Renderer

__all__ = ["Watch"]

BOOKMARK_SECONDS = 60.0
PORTION = 200
SHORTEST_WATCH = 1800.0  # without timeoutSeconds, a random time between this and twice this, as on a real server


class Watch:
    """One watch of one client."""

    def __init__(
        self,
        store: Committed,
        lists: Lists,
        *,
        kind: Kind,
        selector: Selector,
        options: ListOptions,
        renderer: Renderer,
        on_overflow: Callable[[], None],
    ) -> None:
        self._store = store
        self._lists = lists
        self._kind = kind
        self._selector = selector
        self._options = options
        self._renderer = renderer
        self._on_overflow = on_overflow
        self._headers = True
        self._from = parse_revision(options.revision)
        self._after = 0
        self._position = 0
        self._subscription: Subscription | None = None

    async def lines(self) -> AsyncIterator[bytes]:
        """Complete event lines until the watch ends."""
        # A time that is over before it begins is over at once; none at all is a long one.
        seconds = self._options.seconds or SHORTEST_WATCH * (1 + random.SystemRandom().random())
        ends = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(ends):
                opening = await self._begin()
        except TimeoutError:
            return
        except StatusError as refusal:
            yield _line("ERROR", orjson.dumps(failure(refusal)))
            return
        with contextlib.suppress(StatusError):  # an object that cannot be had in the form that was asked for
            for portion in _portions(opening):
                if lines := self._render(portion):
                    yield lines
                await asyncio.sleep(0)
            opening.clear()
            if self._options.initial_events and self._options.bookmarks:
                yield self._bookmark(self._position, initial_events_end=True)
            async for lines in self._following(ends=ends):
                yield lines

    def close(self) -> None:
        if self._subscription is not None:
            self._subscription.close()

    async def _begin(self) -> list[Change]:
        """Subscribe, and give everything that is known so far."""
        if self._options.initial_events and self._from is not None:
            await self._lists.freshness.reach(self._from)
        # From here on in one stretch: no commit falls between what is known, the position and what comes after.
        changes: list[Change] = []
        if self._options.initial_events:
            changes = [Change("ADDED", entry, None) for entry in self._lists.candidates(self._kind, self._selector)]
        elif self._from is not None:
            # Of a future that clients have heard of elsewhere, nothing is told before it is past.
            self._after = self._from
            changes = self._store.history.since(self._kind.storage, revision=self._from)
        self._position = self._store.revision
        self._subscription = self._store.history.subscribe(self._kind.storage)
        self._subscription.on_close(self._closed)
        return changes

    def _closed(self) -> None:
        # A reader that is too slow does not take what is written to it either: only closing the connection reaches it.
        if self._subscription is not None and self._subscription.overflowed:
            self._on_overflow()

    async def _following(self, *, ends: float) -> AsyncIterator[bytes]:
        loop, subscription = asyncio.get_running_loop(), self._subscription
        if subscription is None or loop.time() >= ends:
            return
        # One timer for many events: a timeout around each would cost as much as the event.
        alarm = _Alarm(subscription)
        alarm.set(min(ends, bookmark_at := loop.time() + BOOKMARK_SECONDS))
        try:
            while True:
                changes = await subscription.take()
                if subscription.closed and not changes:
                    return
                for portion in _portions(changes):
                    if lines := self._render(portion):
                        yield lines
                if not alarm.rung:
                    continue
                if ends <= bookmark_at:
                    return
                alarm.set(min(ends, bookmark_at := loop.time() + BOOKMARK_SECONDS))
                # A bookmark promises that everything before it was sent.
                if self._options.bookmarks and not subscription.waiting:
                    yield self._bookmark(self._store.revision, initial_events_end=False)
        finally:
            alarm.cancel()

    def _bookmark(self, revision: int, *, initial_events_end: bool) -> bytes:
        bookmark = self._renderer.bookmark(revision, initial_events_end=initial_events_end, headers=self._headers)
        self._headers = False
        return _line("BOOKMARK", bookmark)

    def _render(self, changes: Iterable[Change]) -> bytes:
        return b"".join(self._change(change) for change in changes)

    def _change(self, change: Change) -> bytes:
        selector, entry, previous = self._selector, change.entry, change.previous
        if entry.revision <= self._after or (selector.namespace and entry.namespace != selector.namespace):
            return b""
        if selector.everything:
            return self._event(change.type, entry)
        was = previous is not None and selector.matches(previous)
        if change.type == "DELETED":
            return self._event("DELETED", entry) if was else b""
        if selector.matches(entry):
            return self._event("MODIFIED" if was else "ADDED", entry)
        if was and previous is not None:
            # The client knows the object as it matched; only the revision tells how far it has come.
            document = previous.decode()
            document["metadata"]["resourceVersion"] = str(entry.revision)
            return self._event("DELETED", make_entry(entry.resource, document))
        return b""

    def _event(self, kind: str, entry: Entry) -> bytes:
        line = _line(kind, self._renderer.object(entry, headers=self._headers))
        self._headers = False
        return line


class _Alarm:
    """Wakes the reader of a subscription when it is time for something else."""

    def __init__(self, subscription: Subscription) -> None:
        self.rung = False
        self._subscription = subscription
        self._timer: asyncio.TimerHandle | None = None

    def set(self, when: float) -> None:
        self.rung = False
        self._timer = asyncio.get_running_loop().call_at(when, self._ring)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self.rung = True
        self._subscription.wake()


def _portions(changes: list[Change]) -> Iterable[list[Change]]:
    return (changes[start : start + PORTION] for start in range(0, len(changes), PORTION))


def _line(kind: str, document: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + document + b"}\n"
