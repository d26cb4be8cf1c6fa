"""Connections to servers of others: one that floods a request with answers is closed.

A client skips provisional answers (RFC 9110, 15.2) until the final answer to its request, and aiohttp keeps further
answers until they are read. It counts neither of them, and an answer without a body does not pause the reading:
hundreds of thousands of such answers, in a few megabytes, would be parsed in one turn of the event loop.

An answer in chunks of one byte, `1\\r\\n{\\r\\n`, costs the work of as many chunks. An answer whose chunk headers are
larger than its content is therefore given up as well. The chunks of a watch, which has no end, are events of hundreds
of bytes.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from aiohttp.streams import StreamReader

__all__ = ["BoundedConnector"]

_ANSWERS = 16
"""The most provisional answers to a request, and the most answers that wait to be read; servers send one or two."""
_FRAMING = 64 << 10
"""The most bytes of an answer beside its content, unless its content is larger than they are."""
_PIECE = 16 << 10
"""The number of bytes that are parsed before the answers in them are counted: some four hundred answers."""


class _Connection(ResponseHandler):
    """One connection, which counts the answers that arrive."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._provisional = 0
        self._flooded = False
        self._received = 0
        self._content: StreamReader | None = None

    def data_received(self, data: bytes) -> None:
        if len(data) <= _PIECE:
            self._take(data)
            return
        for start in range(0, len(data), _PIECE):
            self._take(data[start : start + _PIECE])

    def _take(self, data: bytes) -> None:
        if self._flooded:
            return
        self._received += len(data)
        super().data_received(data)
        if self._provisional > _ANSWERS or len(self._buffer) > _ANSWERS:
            self._give_up(f"more than {_ANSWERS} answers to one request")
        elif self._in_tiny_pieces():
            self._give_up("an answer in pieces of a few bytes")

    def _in_tiny_pieces(self) -> bool:
        content = self._content.total_bytes if self._content is not None else 0
        return self._received - content > max(_FRAMING, content)

    def _give_up(self, problem: str) -> None:
        self._flooded = True
        self._buffer.clear()
        self.set_exception(HttpProcessingError(code=502, message=problem))
        if self.transport is not None:
            self.transport.close()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        message, content = data
        self._provisional = self._provisional + 1 if message.code < 200 else 0
        self._received = 0
        self._content = content
        super().feed_data(data, size)


class BoundedConnector(TCPConnector):
    """Opens connections as `TCPConnector` does; a connection is closed when its server sends endless answers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = cast("partial[ResponseHandler]", partial(_Connection, loop=self._loop))
