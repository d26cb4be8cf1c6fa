"""Server-sent events as bytes that are encoded once, and compressed at most once, for all viewers.

A compressed stream is one gzip member. Each event is a part of it that refers to no earlier bytes (a full flush of
deflate), so the same compressed bytes fit into the stream of every viewer. Only the checksum at the end is the
viewer's own.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any

import orjson

__all__ = ["HEARTBEAT", "Packing", "StreamEvent", "event"]

_LEVEL = 4
"""Rows repeat the same keys and sentences, so higher levels of deflate make them hardly smaller."""
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
_LAST_BLOCK = b"\x03\x00"


class StreamEvent:
    """One event, or a comment, as the bytes of a stream."""

    __slots__ = ("_packed", "plain")

    def __init__(self, plain: bytes) -> None:
        self.plain = plain
        self._packed: bytes | None = None

    @property
    def packed(self) -> bytes:
        """The event as deflated data that ends at the boundary of a byte; computed at the first use."""
        if self._packed is None:
            packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
            self._packed = packer.compress(self.plain) + packer.flush(zlib.Z_FULL_FLUSH)
        return self._packed


class Packing:
    """The gzip member of one stream: its head, its events, and the checksum at its end."""

    def __init__(self) -> None:
        self._checksum = 0
        self._size = 0

    def take(self, frame: StreamEvent) -> bytes:
        """Return the bytes to send for an event."""
        head = b"" if self._size else _HEAD
        self._checksum = zlib.crc32(frame.plain, self._checksum)
        self._size += len(frame.plain)
        return head + frame.packed

    def end(self) -> bytes:
        """Return the bytes that end the member."""
        return _LAST_BLOCK + struct.pack("<LL", self._checksum, self._size & 0xFFFFFFFF)


def event(name: str, data: bytes | Mapping[str, Any], *, identifier: str = "") -> StreamEvent:
    """Return an event, for example `event("patch", {"rows": {}}, identifier="7f3c-42")`."""
    content = data if isinstance(data, bytes) else orjson.dumps(data)
    line = f"id: {identifier}\n".encode() if identifier else b""
    return StreamEvent(b"event: " + name.encode() + b"\n" + line + b"data: " + content + b"\n\n")


HEARTBEAT = StreamEvent(b": still here\n\n")
