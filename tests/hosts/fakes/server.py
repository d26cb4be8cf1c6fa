"""An HTTPS server of a fake host: Git over HTTP by Git itself, and an API, on one port with an authority of its own.

It runs on a thread with its own event loop, so it takes no part in the time or the leaks of a test, and a test may ask
for its state at any moment. Each exchange is kept; what is wrong with one is kept in `problems`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from tests.hosts.fakes.faults import Fault
from tests.support.smart_server import git_answer

__all__ = ["Exchange", "HostServer", "Refusal", "Reply"]

_GIT_PATH = r"/{project:.+}.git/{service:info/refs|git-upload-pack|git-receive-pack}"


@dataclass(frozen=True)
class Exchange:
    """One request to the API and the status of its answer; 0 where the connection ended."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    status: int


@dataclass(frozen=True)
class Reply:
    """An answer of the API."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status)
        self.reply = Reply(status, body, headers or {})


class HostServer:
    """Serves a fake host; subclasses know its API."""

    def __init__(self, root: Path, certificate: Path, *, now: Callable[[], datetime]) -> None:
        self.root = root
        self.now = now
        self.exchanges: list[Exchange] = []
        self.problems: list[str] = []
        self.faults: list[Fault] = []
        self.git_requests: list[str] = []
        self.port = 0
        self._certificate = certificate
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._stop: asyncio.Event | None = None
        self._connections: set[asyncio.Transport] = set()
        self._thread = threading.Thread(target=self._run, name=type(self).__name__)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> str:
        """Return the certificate of the authority, as a Secret holds it."""
        text = self._certificate.read_text()
        return text[text.index("-----BEGIN CERTIFICATE") :]

    def start(self) -> None:
        """Start serving."""
        self._thread.start()
        self._started.wait(10)

    def stop(self) -> None:
        """Stop, and wait until everything is closed."""
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def requests(self, method: str = "", path: str = "") -> list[Exchange]:
        """Return the exchanges whose method is `method` and whose path holds `path`."""
        return [one for one in self.exchanges if method in ("", one.method) and path in one.path]

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the API."""
        raise NotImplementedError

    def may_use_git(self, password: str, *, write: bool) -> bool:
        """Return whether a password of Git over HTTPS is good."""
        raise NotImplementedError

    async def answer(self, request: web.Request, body: Any) -> Reply:
        """Answer a request to the API, or raise `Refusal`."""
        raise NotImplementedError

    def snapshot(self) -> Callable[[], None]:
        """Return what puts the state of the host back to what it is now."""
        raise NotImplementedError

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        application = web.Application(client_max_size=2**26, middlewares=[self._note_connection])
        application.add_routes([web.route("*", _GIT_PATH, self._git), *self.routes()])
        application.router.add_route("*", "/{other:.*}", self._unknown)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await runner.setup()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.port = runner.addresses[0][1]
        self._started.set()
        await self._stop.wait()
        # A client that stays connected would have to answer before a connection is closed, and may not run any more.
        for connection in self._connections:
            connection.abort()
        await runner.cleanup()

    @web.middleware
    async def _note_connection(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.transport is not None:
            self._connections.add(request.transport)
        return await handler(request)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request to the API as today's faults want it."""
        text = await request.text()
        try:
            body = json.loads(text) if text else None
        except ValueError:
            self.problems.append(f"{request.method} {request.path}: the body is no JSON")
            body = None
        fault = next((fault for fault in self.faults if fault.meets(request.method, request.path)), None)
        reply = await self._reply(request, body, fault)
        status = 0 if reply is None else reply.status
        self.exchanges.append(
            Exchange(request.method, request.path, dict(request.query), dict(request.headers), body, status)
        )
        if reply is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response(status=500)
        content = None if reply.body is None else json.dumps(reply.body).encode()
        kind = {} if content is None else {"Content-Type": "application/json; charset=utf-8"}
        return web.Response(status=reply.status, body=content, headers={**kind, **reply.headers})

    async def _reply(self, request: web.Request, body: Any, fault: Fault | None) -> Reply | None:
        if fault is not None and fault.kind == "answer":
            return Reply(fault.status, fault.body, fault.headers)
        if fault is not None and fault.kind == "reset":
            return None
        restore = self.snapshot() if fault is not None and fault.kind == "nothing" else None
        try:
            reply = await self.answer(request, body)
        except Refusal as refusal:
            reply = refusal.reply
        if restore is not None:
            restore()
        return None if fault is not None and fault.kind == "lost" else reply

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        self.problems.append(f"{request.method} {request.path}: the fake host has no such operation")
        return web.json_response({"message": "Not Found"}, status=404)

    async def _git(self, request: web.Request) -> web.StreamResponse:
        self.git_requests.append(f"{request.method} {request.path}")
        service = request.query.get("service", request.match_info["service"])
        if not self.may_use_git(_password(request), write=service == "git-receive-pack"):
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="host"'})
        content = await request.read()
        output = await asyncio.to_thread(git_answer, self._environment(request, len(content)), content)
        head, _, answer = output.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        status = int(headers.pop("Status", "200").split()[0])
        return web.Response(status=status, body=answer, headers=headers)

    def _environment(self, request: web.Request, length: int) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(self.root),
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "HTTP_CONTENT_ENCODING": "",  # aiohttp has decoded it
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "robot",
            "REMOTE_ADDR": "127.0.0.1",
        }


def _password(request: web.Request) -> str:
    scheme, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "basic":
        with suppress(ValueError):
            return base64.b64decode(encoded).decode().partition(":")[2]
    return ""
