"""A server that answers what a test tells it to: the faults a well-behaved API server shows only now and then."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from aiohttp import web

from kardinal.kube import Client, ClusterAccess, Connection

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class ScriptedServer:
    """Answers each request with the next entry of its script; the last entry stays."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    script: deque[Answer] = field(default_factory=deque)

    def answers(self, *answers: Answer) -> None:
        self.script = deque(answers)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = orjson.loads(raw) if raw else None
        self.seen.append(Seen(request.method, request.path, dict(request.query), dict(request.headers), body))
        answer = self.script.popleft() if len(self.script) > 1 else self.script[0]
        return await answer(request)


def reply(status: int, body: object, **headers: str) -> Answer:
    """Return a JSON answer."""

    async def answer(_: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=orjson.dumps(body), headers=named, content_type="application/json")

    return answer


def failure(code: int, reason: str, message: str = "no", **headers: str) -> Answer:
    """Return a Status answer."""
    return reply(code, status_object(code, reason, message), **headers)


def status_object(code: int, reason: str, message: str = "no", **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


def text(status: int, body: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=body)

    return answer


def hang_up() -> Answer:
    """Break the connection instead of answering."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return answer


def stream(*chunks: bytes, cut: bool = False, until: asyncio.Event | None = None) -> Answer:
    """Return a watch that sends `chunks` as they are and ends, or is cut without an end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if until is not None:
            await until.wait()
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    scripted = ScriptedServer()
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", scripted.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    scripted.url = f"http://{host}:{port}"
    yield scripted
    await runner.cleanup()


@pytest.fixture
def pauses() -> list[float]:
    """How long the client waited between its tries."""
    return []


@pytest.fixture
async def client(server: ScriptedServer, pauses: list[float]) -> AsyncIterator[Client]:
    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async with Client(Connection(ClusterAccess(server.url)), user_agent="test", sleep=sleep) as opened:
        yield opened
