"""The endpoint of a custom step: a real HTTP server on loopback that answers as it is told and keeps what it heard."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

__all__ = ["Endpoint", "Heard", "answering", "serving_endpoint"]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Heard:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Endpoint:
    """Answers the n-th request with the n-th of `handlers`, and all after the last one with that."""

    def __init__(self, *handlers: Handler) -> None:
        self.handlers = list(handlers)
        self.heard: list[Heard] = []
        self.port = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/validate"

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.heard.append(Heard(request.method, request.path_qs, headers, await request.read()))
        return await self.handlers[min(len(self.heard), len(self.handlers)) - 1](request)


def answering(status: int = 200, body: Any = None, **headers: str) -> Handler:
    """Return a handler with one answer; by default that the promotion may go on."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    text = body if isinstance(body, str) else json.dumps({"success": True, "message": "fine"} if body is None else body)

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text, headers=names, content_type="application/json")

    return handle


@asynccontextmanager
async def serving_endpoint(*handlers: Handler) -> AsyncIterator[Endpoint]:
    """Serve an endpoint until the end of the block."""
    endpoint = Endpoint(*handlers or (answering(),))
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", endpoint.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    endpoint.port = runner.addresses[0][1]
    try:
        yield endpoint
    finally:
        await runner.cleanup()
