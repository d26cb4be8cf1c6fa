"""Watches: a list that keeps talking.

A watch starts from a revision (replayed from the history), or from the state of now (told as ADDED events), and then
follows every commit in order. What it sends are changes of its *selection*: an object that stops matching is DELETED
for this watcher, one that starts matching is ADDED, whatever happened to it.

Its deadlines are those of the network, in real time: a test that stops its clock must not stop the bookmarks.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

import orjson

from kardinal.localplane.errors import Cause, StatusError
from kardinal.localplane.kinds import Kind
from kardinal.localplane.objects import Lists, Selector, parse_revision, revision_too_large
from kardinal.localplane.statuses import bad_request, failure, invalid
from kardinal.localplane.storage import Change, Committed, Entry, Subscription, make_entry
from kardinal.localplane.wire import Renderer, flag

__all__ = ["Watch", "WatchRequest", "parse_watch"]

BOOKMARK_SECONDS = 60.0
PORTION = 200
SHORTEST_WATCH = 1800.0  # without timeoutSeconds, a random time between this and twice this, as on a real server


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """The parameters of one watch."""

    selector: Selector
    revision: int | None
    initial_events: bool
    bookmarks: bool
    seconds: float


def parse_watch(kind: Kind, selector: Selector, query: Mapping[str, str]) -> WatchRequest:
    initial_events, match = flag(query, "sendInitialEvents"), query.get("resourceVersionMatch", "")
    problem = ""
    if "sendInitialEvents" in query and match != "NotOlderThan":
        problem = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif match and "sendInitialEvents" not in query:
        problem = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    if problem:
        raise invalid(kind, "", [Cause("FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {problem}")])
    timeout = query.get("timeoutSeconds", "") or "0"
    if not timeout.isascii() or not timeout.isdigit():
        raise bad_request(f"timeoutSeconds: {timeout!r} is not a number")
    return WatchRequest(
        selector=selector,
        revision=parse_revision(query.get("resourceVersion", "")),
        initial_events=initial_events,
        bookmarks=flag(query, "allowWatchBookmarks"),
        seconds=float(timeout) or SHORTEST_WATCH * (1 + random.SystemRandom().random()),
    )


class Watch:
    """One watch of one client."""

    def __init__(
        self, store: Committed, lists: Lists, *, kind: Kind, request: WatchRequest, renderer: Renderer
    ) -> None:
        self._store = store
        self._lists = lists
        self._kind = kind
        self._request = request
        self._renderer = renderer
        self._headers = True
        # Position, opening and subscription are taken in one stretch: no commit falls between them.
        self._start = store.revision
        self._refusal: StatusError | None = None
        self._opening: list[Change] = []
        try:
            self._opening = self._changes_so_far()
        except StatusError as error:
            self._refusal = error
        self.subscription: Subscription = store.history.subscribe(kind.storage)

    async def lines(self) -> AsyncIterator[bytes]:
        """Complete event lines until the watch ends."""
        if self._refusal is not None:
            yield _line("ERROR", orjson.dumps(failure(self._refusal)))
            return
        for start in range(0, len(self._opening), PORTION):
            if lines := self._render(self._opening[start : start + PORTION]):
                yield lines
        self._opening.clear()
        if self._request.initial_events and self._request.bookmarks:
            yield self._bookmark(self._start, initial_events_end=True)
        loop = asyncio.get_running_loop()
        ends, bookmark_at = loop.time() + self._request.seconds, loop.time() + BOOKMARK_SECONDS
        while (now := loop.time()) < ends:
            if now >= bookmark_at:
                bookmark_at = now + BOOKMARK_SECONDS
                # A bookmark promises that everything before it was sent.
                if self._request.bookmarks and not self.subscription.waiting:
                    yield self._bookmark(self._store.revision, initial_events_end=False)
            try:
                async with asyncio.timeout_at(min(ends, bookmark_at)):
                    changes = await self.subscription.take()
            except TimeoutError:
                continue
            if not changes:
                return
            if lines := self._render(changes):
                yield lines

    def close(self) -> None:
        self.subscription.close()

    def _changes_so_far(self) -> list[Change]:
        """Everything that is known when the watch begins."""
        request = self._request
        if request.revision is not None and not request.initial_events:
            return self._store.history.since(self._kind.storage, revision=request.revision)
        if request.revision is not None and request.revision > self._start:
            raise revision_too_large(request.revision, current=self._start)
        return [Change("ADDED", entry, None) for entry in self._lists.select(self._kind, request.selector)]

    def _bookmark(self, revision: int, *, initial_events_end: bool) -> bytes:
        return _line("BOOKMARK", self._renderer.bookmark(revision, initial_events_end=initial_events_end))

    def _render(self, changes: Iterable[Change]) -> bytes:
        return b"".join(self._change(change) for change in changes)

    def _change(self, change: Change) -> bytes:
        selector, entry, previous = self._request.selector, change.entry, change.previous
        if selector.everything and (not selector.namespace or entry.namespace == selector.namespace):
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


def _line(kind: str, document: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + document + b"}\n"
