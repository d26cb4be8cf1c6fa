"""The connections of one listener: their number, and the times that a client may take.

Each connection takes a file descriptor of the process, which the client of the API server, Git and the probes need as
well, and anyone can open connections at no cost. So each listener has its own limit. If the limit is reached, the
connection that has waited longest for its client is closed in favour of the new one: it waits for a head, for the rest
of a body, or for the answer to be read. If no connection waits for its client, the new one is closed.

A head must be complete within `HEAD_SECONDS` and `HEAD_BYTES`, an idle connection is closed after `IDLE_SECONDS`, and
an answer must be read within `ANSWER_SECONDS`. Whatever arrives before the previous request is answered, another
request or bytes beyond the length of a body, ends the connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import cast

from aiohttp import StreamReader, web
from aiohttp.web_protocol import RequestHandler

from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.runtime.addresses import network_of

__all__ = ["IDLE_SECONDS", "Connections"]

HEAD_SECONDS = 15.0
"""The time in seconds for the head of a request, from its first byte, or from the start of the connection."""
HEAD_BYTES = 32 * 1024
IDLE_SECONDS = 120.0
"""The time in seconds between two requests. Ingresses keep connections for 60 to 90 s and should close them first."""
ANSWER_SECONDS = 30.0
"""The time in seconds for a client to read the data that is sent to it."""

FOREIGN = ForeignBytes(
    "heads of requests",
    of="stranger",
    size=f"{mebibytes(HEAD_BYTES)}, 128 headers of 8 KiB",
    unpacked="not compressed",
    structure="flat",
    time=f"{HEAD_SECONDS:.0f} s; {IDLE_SECONDS:.0f} s between requests; {ANSWER_SECONDS:.0f} s to read an answer",
    held="256 connections of the webhook, 512 of the page, 64 of probes, 64 of metrics",
    decoded="event loop",
    tests=(
        "attacks/test_connections.py::test_a_head_without_an_end_is_not_taken_whole",
        "attacks/test_connections.py::test_a_thousand_sockets_leave_descriptors_and_memory_to_the_rest",
    ),
)

_PIECE = 16 * 1024
"""The most bytes that are parsed at once before the result is checked; an error about a head quotes as many."""
_END_OF_HEAD = b"\r\n\r\n"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Connections:
    """The connections of a listener: at most `most`, and at most `per_address` from one address (0: no limit).

    `guarded` wraps the protocol of each connection. `watched` is the outermost middleware of the application.
    """

    def __init__(self, *, most: int, per_address: int = 0) -> None:
        self._most = most
        self._per_address = per_address
        # In the order in which they began to wait for their client, or to work.
        self._open: OrderedDict[asyncio.BaseTransport, _Connection] = OrderedDict()
        self._addresses: Counter[str] = Counter()

    def guarded(self, protocol: RequestHandler) -> asyncio.Protocol:
        """Return the guarded protocol for a new connection that `protocol` will serve."""
        return _Connection(self, protocol)

    @web.middleware
    async def watched(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Note the arrival of a head, and the start of its answer."""
        connection = self._open.get(request.transport) if request.transport is not None else None
        if connection is None:
            return await handler(request)
        connection.begin(request)
        try:
            return await handler(request)
        finally:
            connection.end()

    def admit(self, connection: _Connection, transport: asyncio.Transport) -> bool:
        """Return whether there is room for a connection, closing another one if necessary."""
        address = connection.address
        if self._per_address and self._addresses[address] >= self._per_address and not self._make_room(address):
            return False
        if len(self._open) >= self._most and not self._make_room(None):
            return False
        self._open[transport] = connection
        self._addresses[address] += 1
        return True

    def forget(self, transport: asyncio.BaseTransport) -> None:
        connection = self._open.pop(transport, None)
        if connection is None:
            return
        self._addresses[connection.address] -= 1
        if not self._addresses[connection.address]:
            del self._addresses[connection.address]

    def refresh(self, transport: asyncio.BaseTransport) -> None:
        """Note that a connection begins to wait now."""
        if transport in self._open:
            self._open.move_to_end(transport)

    def _make_room(self, address: str | None) -> bool:
        """Close the connection that has waited longest for its client, of `address` if given."""
        for connection in self._open.values():
            if connection.is_waiting and address in (None, connection.address):
                connection.abort()
                return True
        return False


class _Connection(asyncio.Protocol):
    """A connection, and the protocol that serves it."""

    def __init__(self, connections: Connections, inner: RequestHandler) -> None:
        self._connections = connections
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        self._body: StreamReader | None = None
        self._head = bytearray()
        self._working = False
        self._idle = False
        self._waits: asyncio.TimerHandle | None = None
        self._sends: asyncio.TimerHandle | None = None
        self.address = ""

    @property
    def is_waiting(self) -> bool:
        """Return whether the client has to act next."""
        return not self._working or not self._has_body

    @property
    def _has_body(self) -> bool:
        """Return whether the body of the last request has arrived completely."""
        return self._body is None or self._body.is_eof()

    def begin(self, request: web.Request) -> None:
        """Note that the head of a request has arrived."""
        self._body = request.content
        self._working = True
        self._head.clear()
        self._wait_for_client(None)

    def end(self) -> None:
        """Note that the answer is complete; the client must read it, and may then send the next request."""
        self._working = False
        self._idle = True
        self._wait_for_client(IDLE_SECONDS)

    def abort(self) -> None:
        if self._transport is not None:
            self._connections.forget(self._transport)
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        stream = cast(asyncio.Transport, transport)
        peer = stream.get_extra_info("peername")
        self.address = network_of(peer[0] if peer else None)
        if not self._connections.admit(self, stream):
            stream.abort()
            return
        self._transport = stream
        # Without a buffer, every byte that the client has not read counts as an unread answer.
        stream.set_write_buffer_limits(high=0)
        self._inner.connection_made(stream)
        self._wait_for_client(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is None:
            return
        self._connections.forget(self._transport)
        for timer in (self._waits, self._sends):
            if timer is not None:
                timer.cancel()
        self._inner.connection_lost(exc)
        if self._body is not None and not self._body.is_eof():
            # Otherwise a handler that waits for the rest of the body would not learn that it will not come.
            self._body.feed_eof()

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            if not self._take(data[start : start + _PIECE]):
                self.abort()
                return

    def _take(self, data: bytes) -> bool:
        """Parse data of the client, and return whether the client may send more."""
        # The rest of a body is read even if the request was answered early, because the client must be able to read the
        # answer.
        if self._has_body and (self._working or not self._is_head(data)):
            return False
        self._inner.data_received(data)
        # An error of the parser is queued like a request, and each further piece of data would add another error.
        return len(self._inner._messages) + self._working <= 1

    def eof_received(self) -> None:
        self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()
        self._sends = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self.abort)

    def resume_writing(self) -> None:
        if self._sends is not None:
            self._sends.cancel()
            self._sends = None
        self._inner.resume_writing()

    def _is_head(self, data: bytes) -> bool:
        """Return whether data between requests may be a head, and start the time limit at its first byte."""
        if self._idle:
            self._idle = False
            self._wait_for_client(HEAD_SECONDS)
        if _END_OF_HEAD in self._head:
            return True
        self._head += data[: HEAD_BYTES + 1]
        end = self._head.find(_END_OF_HEAD)
        return (len(self._head) if end < 0 else end) <= HEAD_BYTES

    def _wait_for_client(self, seconds: float | None) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None
        if self._transport is None:
            return
        self._connections.refresh(self._transport)
        if seconds is not None:
            self._waits = asyncio.get_running_loop().call_later(seconds, self.abort)
