"""A web application at one address, with limits on its connections and on the size of heads."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

from aiohttp import web
from aiohttp.http import HttpProcessingError

from kardinal.runtime.addresses import split_address
from kardinal.runtime.connections import IDLE_SECONDS, Connections
from kardinal.runtime.descriptors import share

__all__ = ["Listener"]

ACCEPTED_AT_ONCE = 0.5
"""The backlog of a listener, as a fraction of its connections. So many can arrive before the first is accepted.

A client that finds the backlog full retries after a second, so a burst of deliveries should fit in.
"""
HANDSHAKE_SECONDS = 5.0
"""The time in seconds for the handshake of TLS, during which a connection does not count for the limits."""
READ_BUFFER = 32 * 1024
"""The buffer in bytes for a body before it is read; each connection can use twice as much."""


def _is_own(record: logging.LogRecord) -> bool:
    """Return whether a line is not about bytes of a client that are no request, which it would quote."""
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_log = logging.getLogger(__name__)
_log.addFilter(_is_own)


class Listener:
    """Serve an application with at most `most` connections, and `per_address` from one address (0: no limit)."""

    def __init__(self, *, most: int, per_address: int = 0, shutdown_seconds: float = 1.0) -> None:
        self._most = most
        self._per_address = per_address
        self._shutdown_seconds = shutdown_seconds
        self._runner: web.AppRunner | None = None
        self._servers: list[asyncio.Server] = []
        self._serve: Callable[..., Awaitable[asyncio.Server]] | None = None

    async def start(self, app: web.Application, address: str, *, tls: ssl.SSLContext | None = None) -> str:
        """Listen on `address` (`host:port`, where port 0 takes a free one) and return the URL."""
        host, port = split_address(address)
        most = share(self._most)
        connections = Connections(most=most, per_address=self._per_address)
        app.middlewares.insert(0, connections.watched)
        # Compressed bodies are not unpacked: no client sends any, and a few bytes could become many.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_log,
            shutdown_timeout=self._shutdown_seconds,
            keepalive_timeout=IDLE_SECONDS,
            read_bufsize=READ_BUFFER,
            auto_decompress=False,
        )
        await self._runner.setup()
        protocol = cast(web.Server, self._runner.server)
        self._serve = partial(
            asyncio.get_running_loop().create_server,
            lambda: connections.guarded(protocol()),
            backlog=int(most * ACCEPTED_AT_ONCE),
            ssl_handshake_timeout=HANDSHAKE_SECONDS if tls is not None else None,
        )
        self._servers = [await self._serve(host, port, ssl=tls)]
        bound = self._servers[0].sockets[0].getsockname()
        name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        return f"{'http' if tls is None else 'https'}://{name}:{bound[1]}"

    async def renew(self, tls: ssl.SSLContext) -> None:
        """Open new connections under another context; those that are open end after the request that they are at."""
        if self._serve is None or self._runner is None:
            raise RuntimeError("a listener that has not started is renewed")
        earlier = self._servers
        # The sockets listen on without a gap: only their copies of before are closed.
        sockets = [each.dup() for server in earlier for each in server.sockets]
        self._servers = [await self._serve(sock=each, ssl=tls) for each in sockets]
        for server in earlier:
            server.close()
        cast(web.Server, self._runner.server).pre_shutdown()

    async def stop(self) -> None:
        for server in self._servers:
            server.close()
        self._servers = []
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
