"""Read one watch: bytes in, events out.

A watch is a sequence of JSON lines that the network splits anywhere, and a line can be larger than any read buffer. The
splitter keeps the pieces of an unfinished line in a list, so that a line of a megabyte is joined once instead of being
copied with every chunk. There are three kinds of failures: an HTTP error, which the transport raises; a broken
connection; and an ERROR line inside an HTTP 200. All become exceptions of the same tree. The iteration ends without an
exception only if the server closed the stream properly and nothing was lost. The length of a line is limited.
"""

from __future__ import annotations

from collections import deque
from typing import Self

import aiohttp

from kardinal.bounded import OverLimit
from kardinal.kube.bounds import HUB, Allowance, Bounds, checked_object, decode_body
from kardinal.kube.errors import ConnectionFailed, error_from_status
from kardinal.kube.objects import WatchEvent

__all__ = ["LineSplitter", "WatchStream"]


class LineSplitter:
    """Split a stream of chunks into lines of at most `limit` bytes plus one chunk."""

    def __init__(self, limit: int = HUB.event.size) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without line ends. Raises `OverLimit`."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        self._size = len(rest) if lines else self._size + len(rest)
        if self._size > self._limit:
            raise OverLimit(f"a line has more than {self._limit:,} bytes")
        if lines and self._pieces:
            lines[0] = b"".join([*self._pieces, lines[0]])
            self._pieces.clear()
        if rest:
            self._pieces.append(rest)
        return [line for line in lines if line]

    @property
    def unfinished(self) -> bool:
        """Return whether a stream that ends now was cut in the middle of a line."""
        return bool(self._pieces)


class WatchStream:
    """The events of one watch, in the server's order. The iteration suspends only if no event has arrived."""

    def __init__(
        self, content: aiohttp.StreamReader, *, path: str, bounds: Bounds, allowance: Allowance | None = None
    ) -> None:
        self._content = content
        self._path = path
        self._bounds = bounds
        self._allowance = allowance
        self._splitter = LineSplitter(bounds.event.size)
        self._lines: deque[bytes] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._lines:
            chunk = await self._read()
            if not chunk:
                if self._splitter.unfinished:
                    raise ConnectionFailed(f"WATCH {self._path}: the stream was cut inside a line")
                raise StopAsyncIteration
            try:
                self._lines.extend(self._splitter.feed(chunk))
            except OverLimit as error:
                raise ConnectionFailed(f"WATCH {self._path}: {error}") from None
        return await self._decode(self._lines.popleft())

    async def _read(self) -> bytes:
        try:
            return await self._content.readany()
        except TimeoutError as error:
            raise ConnectionFailed(f"WATCH {self._path}: silent for too long") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionFailed(f"WATCH {self._path}: {str(error) or type(error).__name__}") from error

    async def _decode(self, line: bytes) -> WatchEvent:
        try:
            event, memory = await decode_body(line, self._bounds.event, trusted=self._bounds.trusted)
            kind = event["type"]
            payload = event["object"]
            if not self._bounds.trusted and kind != "ERROR":
                checked_object(payload, named=kind != "BOOKMARK")
        except OverLimit as error:
            raise ConnectionFailed(f"WATCH {self._path}: a line cannot be read: {error}") from None
        except (ValueError, KeyError, TypeError):
            raise ConnectionFailed(f"WATCH {self._path}: a line is not a watch event") from None
        if kind == "ERROR":
            raise error_from_status(payload if isinstance(payload, dict) else {})
        if self._allowance is not None and kind in ("ADDED", "MODIFIED"):
            self._allowance.take(memory)
        return WatchEvent(kind, payload)
