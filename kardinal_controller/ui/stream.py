"""One stream of server-sent events for a viewer: a snapshot, then patches, until the viewer leaves or may not stay.

    event: snapshot            event: patch              event: end
    data: {"rows": {…}}        id: 7f3c-42               data: {"reason": "…", "again": true}
                               data: {"rows": {…}}

The stream waits for a change of what it shows. It has no queue: a viewer who reads slowly is behind, and one who is
behind by more patches than are kept gets a snapshot. One who does not read at all is cut off by the limits on
connections.
Every 60 seconds the viewer is authorised again. At shutdown all streams end at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Protocol

from aiohttp import web

from kardinal.clock import Clock, Timer
from kardinal.runtime.logging import describe, get_logger
from kardinal_controller.ui.access.refusal import Refusal
from kardinal_controller.ui.access.seat import Access, Seat
from kardinal_controller.ui.feed import Feed
from kardinal_controller.ui.frames import HEARTBEAT, Packing, StreamEvent, event
from kardinal_controller.ui.live import LiveDocument, Snapshot
from kardinal_controller.ui.model import StreamEnd

__all__ = ["DocumentSource", "OverviewSource", "StreamSource", "Streams"]

HEARTBEAT_SECONDS = 15.0
"""The time in seconds between comments, by which viewer and server notice that the other one is gone."""
REVIEWED_BEATS = 4
"""The heartbeats between two authorisations of a viewer: 60 seconds."""
STREAMS = 200
"""The most streams at once."""
STREAMS_PER_VIEWER = 16
"""The most streams of one user: the pages that they have open."""
RETRY_SECONDS = 10

_STOPS = "the server stops"

_log = get_logger(__name__)


class StreamSource(Protocol):
    """The content of a stream: a live document, or the overview of some namespaces."""

    @property
    def number(self) -> int:
        """The number of the present state."""
        ...

    @property
    def ended(self) -> str:
        """The reason why there is nothing to show any more; empty otherwise."""
        ...

    @property
    def watchers(self) -> set[Callable[[], None]]:
        """The functions that are called after a change."""
        ...

    async def refresh(self) -> bool:
        """Look again which objects the viewer may see; returns whether a snapshot must be sent for that."""
        ...

    def after(self, number: int) -> Sequence[StreamEvent] | None:
        """Return the patches after a state; None if not all of them are kept."""
        ...

    async def snapshot(self) -> Snapshot: ...


class DocumentSource:
    """One live document. `may_see` says whether the viewer may still see it."""

    def __init__(self, live: LiveDocument, may_see: Callable[[], Awaitable[bool]]) -> None:
        self._live = live
        self._may_see = may_see
        self._hidden = False

    @property
    def number(self) -> int:
        return self._live.number

    @property
    def ended(self) -> str:
        return "you may not see this any more" if self._hidden else self._live.ended

    @property
    def watchers(self) -> set[Callable[[], None]]:
        return self._live.watchers

    async def refresh(self) -> bool:
        self._hidden = not await self._may_see()
        return False

    def after(self, number: int) -> Sequence[StreamEvent] | None:
        return self._live.after(number)

    async def snapshot(self) -> Snapshot:
        return self._live.snapshot()


class OverviewSource:
    """The overview of the namespaces that a viewer may see; `visible` selects them."""

    ended = ""

    def __init__(self, feed: Feed, visible: Callable[[Iterable[str]], Awaitable[frozenset[str]]]) -> None:
        self._live = feed.overview
        self._visible = visible
        self._known: frozenset[str] = frozenset()
        self._namespaces: frozenset[str] = frozenset()

    @property
    def number(self) -> int:
        return self._live.number

    @property
    def watchers(self) -> set[Callable[[], None]]:
        return self._live.watchers

    async def refresh(self) -> bool:
        before = self._namespaces
        self._known = self._live.namespaces
        self._namespaces = await self._visible(self._known)
        return self._namespaces != before

    def after(self, number: int) -> Sequence[StreamEvent] | None:
        # A namespace about which the viewer's rights are not known needs a look at them, and a snapshot.
        return self._live.after(number, self._namespaces) if self._live.namespaces <= self._known else None

    async def snapshot(self) -> Snapshot:
        if not self._live.namespaces <= self._known:
            await self.refresh()
        return await self._live.snapshot(self._namespaces)


class Streams:
    """All streams of a server."""

    def __init__(self, feed: Feed, access: Access, *, clock: Clock) -> None:
        self._feed = feed
        self._access = access
        self._clock = clock
        self._open: dict[_Stream, str] = {}
        self._stopping = False

    async def stop(self) -> None:
        """End all streams, and refuse new ones."""
        self._stopping = True
        self.end(_STOPS)

    def end(self, reason: str) -> None:
        """End the streams that are open; their pages connect again."""
        for stream in list(self._open):
            stream.end(reason, again=True)

    async def answer(self, request: web.Request, seat: Seat, source: StreamSource) -> web.StreamResponse:
        """Stream `source` to a viewer until either end closes. Raises `Refusal` 503 beyond the limits."""
        with self._admitted(request, seat, source) as stream:
            return await stream.run(self._feed.numbers.parse(request.headers.get("Last-Event-ID", "")))

    @contextmanager
    def _admitted(self, request: web.Request, seat: Seat, source: StreamSource) -> Iterator[_Stream]:
        if self._stopping:
            raise _busy(_STOPS, "Connect again.")
        user = seat.viewer.user
        # Connections that were lost are noticed by their next write at the latest, which may be 15 seconds away.
        for stream in [each for each in self._open if each.is_lost]:
            stream.end("the connection is lost", again=True)
            del self._open[stream]
        if len(self._open) >= STREAMS:
            raise _busy(f"{STREAMS} pages are open", "Try again later.")
        if sum(each == user for each in self._open.values()) >= STREAMS_PER_VIEWER:
            raise _busy(f"you have {STREAMS_PER_VIEWER} pages open", "Close one.")
        stream = _Stream(request, seat, source, self._access, self._clock)
        self._open[stream] = user
        source.watchers.add(stream.wake)
        try:
            yield stream
        finally:
            source.watchers.discard(stream.wake)
            self._open.pop(stream, None)


class _Stream:
    """One open stream."""

    def __init__(self, request: web.Request, seat: Seat, source: StreamSource, access: Access, clock: Clock) -> None:
        self._request = request
        self._seat = seat
        self._source = source
        self._access = access
        self._clock = clock
        self._woken = asyncio.Event()
        self._end: StreamEnd | None = None
        self._timer: Timer | None = None
        self._beats = 0
        self._packing = Packing() if _takes_gzip(request) else None

    @property
    def is_lost(self) -> bool:
        """Return whether the connection is closed."""
        transport = self._request.transport
        return transport is None or transport.is_closing()

    def wake(self) -> None:
        self._woken.set()

    def end(self, reason: str, *, again: bool) -> None:
        """Send `end` as the last event."""
        self._end = StreamEnd(reason=reason, again=again)
        self._woken.set()

    async def run(self, position: int | None) -> web.StreamResponse:
        """Send events from a position, or a snapshot where it is None or too old."""
        await self._source.refresh()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        if self._packing is not None:
            response.headers["Content-Encoding"] = "gzip"
            response.headers["Vary"] = "Accept-Encoding"
        await response.prepare(self._request)
        self._timer = self._clock.call_later(HEARTBEAT_SECONDS, self._beat)
        try:
            await self._follow(response, position)
            await response.write_eof()
        except ConnectionError:
            _log.debug("a viewer has left a stream")
        except Exception as error:
            # The head of the answer is sent, so the viewer learns of it by the end of the connection.
            _log.error("a stream of the page failed by a bug", **describe(error))
        finally:
            self._timer.cancel()
        return response

    def _beat(self) -> None:
        self._beats += 1
        self._timer = self._clock.call_later(HEARTBEAT_SECONDS, self._beat)
        self._woken.set()

    async def _follow(self, response: web.StreamResponse, position: int | None) -> None:
        beats = reviewed = 0
        while self._end is None:
            self._woken.clear()
            try:
                if self._beats - reviewed >= REVIEWED_BEATS:
                    reviewed = self._beats
                    if await self._review():
                        position = None
                if self._source.ended:
                    self.end(self._source.ended, again=False)
                if self._end is None:
                    position = await self._send_changes(response, position)
            except web.HTTPException as refusal:
                self.end(refusal.reason, again=True)
            if self._beats > beats:
                beats = self._beats
                await self._write(response, HEARTBEAT)
            await self._woken.wait()
        await self._write(response, event("end", self._end.model_dump_json().encode()))
        if self._packing is not None:
            await response.write(self._packing.end())

    async def _send_changes(self, response: web.StreamResponse, position: int | None) -> int:
        """Send what is later than a position, and return the new one."""
        number = self._source.number
        frames = self._source.after(position) if position is not None else None
        if frames is None:
            snapshot = await self._source.snapshot()
            number = snapshot.number
            frames = snapshot.frames
        for frame in frames:
            await self._write(response, frame)
            # Many viewers may come back in one moment: each of them sends one event in a turn of the event loop.
            await asyncio.sleep(0)
        return number

    async def _review(self) -> bool:
        """Authorise the viewer again; returns whether they see other objects than before."""
        reason = await self._access.still_valid(self._seat)
        if reason:
            # Who connects again is told how to log in.
            self.end(reason, again=True)
            return False
        return await self._source.refresh()

    async def _write(self, response: web.StreamResponse, frame: StreamEvent) -> None:
        await response.write(frame.plain if self._packing is None else self._packing.take(frame))


def _takes_gzip(request: web.Request) -> bool:
    accepted = [each.split(";")[0].strip() for each in request.headers.get("Accept-Encoding", "").lower().split(",")]
    return "gzip" in accepted


def _busy(message: str, remedy: str) -> Refusal:
    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, message, remedy=remedy, headers={"Retry-After": str(RETRY_SECONDS)})
