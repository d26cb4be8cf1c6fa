"""A web application served at one address, within bounds on its connections and on the size of heads."""

from __future__ import annotations

import asyncio
from typing import cast

from aiohttp import web

from kardinal.runtime.addresses import split_address
from kardinal.runtime.connections import IDLE_SECONDS, Connections
from kardinal.runtime.descriptors import share

__all__ = ["Listener"]

ACCEPTED_AT_ONCE = 0.5
"""Part of its connections that a listener accepts at once: as many more may come before the first of them is read.

A client that finds this queue full tries again after a second, so a burst of deliveries should fit in.
"""
READ_BUFFER = 32 * 1024
"""Bytes of a body that are taken before it is read: twice as many, for each connection."""


class Listener:
    """Serves an application with at most `most` connections, of one address `per_address` (0: any number)."""

    def __init__(self, *, most: int, per_address: int = 0, shutdown_seconds: float = 1.0) -> None:
        self._most = most
        self._per_address = per_address
        self._shutdown_seconds = shutdown_seconds
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    async def start(self, app: web.Application, address: str) -> str:
        """Listen on `address` (`host:port`, port 0 takes a free one) and return the URL."""
        host, port = split_address(address)
        most = share(self._most)
        connections = Connections(most=most, per_address=self._per_address)
        app.middlewares.insert(0, connections.watched)
        # Compressed bodies are left as they are: no client sends any, and a few bytes could become many.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=self._shutdown_seconds,
            keepalive_timeout=IDLE_SECONDS,
            read_bufsize=READ_BUFFER,
            auto_decompress=False,
        )
        await self._runner.setup()
        protocol = cast(web.Server, self._runner.server)
        loop = asyncio.get_running_loop()
        backlog = int(most * ACCEPTED_AT_ONCE)
        self._server = await loop.create_server(lambda: connections.guarded(protocol()), host, port, backlog=backlog)
        bound = self._server.sockets[0].getsockname()
        name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        return f"http://{name}:{bound[1]}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
