"""A wire before a server that a test can cut: connections break, and none can be made until it is mended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

__all__ = ["Relay", "relay_to"]

_CHUNK = 65536


class Relay:
    """Passes bytes on between its own port and that of a server, both on this machine."""

    port: int

    def __init__(self, target: int) -> None:
        self._target = target
        self._whole = True
        self._ends: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self) -> None:
        """Break every connection, and let none be made."""
        self._whole = False
        for end in self._ends:
            end.transport.abort()

    def mend(self) -> None:
        """Let connections be made again."""
        self._whole = True

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on until either side ends it."""
        if not self._whole:
            writer.transport.abort()
            return
        behind, ahead = await asyncio.open_connection("127.0.0.1", self._target)
        self._ends |= {writer, ahead}
        try:
            await asyncio.gather(_pump(reader, ahead), _pump(behind, writer))
        finally:
            for end in (writer, ahead):
                end.transport.abort()
                self._ends.discard(end)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection in a task that is kept."""
        task = asyncio.create_task(self.serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


@asynccontextmanager
async def relay_to(port: int) -> AsyncIterator[Relay]:
    """Yield a relay to a port of this machine."""
    relay = Relay(port)
    server = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        await relay.close()
        await server.wait_closed()
