"""Viewers of the overview: they read its stream, and one of them looks into it."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import orjson

__all__ = ["Viewer", "connected"]

HEADERS = {"Accept-Encoding": "gzip"}


@dataclass(slots=True)
class Viewer:
    """One open stream; `patches` are the times at which patches of a row arrived, for a viewer that looks into them."""

    name: str
    looks: bool = False
    size: int = 0
    """The number of bytes that it has read."""
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    patches: dict[str, list[float]] = field(default_factory=dict)

    async def follow(self, session: aiohttp.ClientSession, url: str) -> None:
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        rest = b""
        headers = HEADERS | {"X-Viewer": self.name}
        async with session.get(f"{url}/api/ui/v1/stream/overview", headers=headers) as answer:
            async for chunk in answer.content.iter_any():
                arrived = time.monotonic()
                self.size += len(chunk)
                if self.complete.is_set() and not self.looks:
                    continue
                rest += unpacking.decompress(chunk)
                *events, rest = rest.split(b"\n\n")
                for event in events:
                    self._take(event, arrived)

    def _take(self, event: bytes, arrived: float) -> None:
        if event.startswith(b"event: complete"):
            self.complete.set()
        elif event.startswith(b"event: patch"):
            for row in orjson.loads(event[event.index(b"\ndata: ") + 7 :]).get("rows", {}):
                self.patches.setdefault(row, []).append(arrived)


@asynccontextmanager
async def connected(url: str, viewers: int) -> AsyncIterator[Sequence[Viewer]]:
    """Connect all viewers at once, and yield them when each of them has its first picture."""
    people = [Viewer(f"viewer-{number}", looks=not number) for number in range(viewers)]
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
        following = [asyncio.create_task(each.follow(session, url)) for each in people]
        try:
            await asyncio.gather(*(each.complete.wait() for each in people))
            yield people
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
