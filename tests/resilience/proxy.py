"""A proxy before an API server that can keep a request for itself.

What a process has done and what the server knows of it differ for a moment, and in that moment a process can die. A
proxy makes the moment last: the request it holds never reaches the server, or its answer never the sender, which waits
for it until it is killed. Everything else passes through as it comes, watches as streams.

It speaks plain HTTP to its client and brings the client's credentials itself, so that nothing of the client's TLS has
to be taken apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
from aiohttp import web
from yarl import URL

from kardinal.kube import load_connection
from tests.support.names import TEAM

__all__ = ["HoldingProxy", "holding_proxy"]

_PASSED_ON = ("Accept", "Content-Type", "Impersonate-User", "User-Agent")


class HoldingProxy:
    """See the module; `hold` is set by the test, and `held` is set when the first request it accepts has come."""

    def __init__(self, server: str, session: aiohttp.ClientSession) -> None:
        self.held = asyncio.Event()
        self._server = server
        self._session = session
        self._wanted: Callable[[str, str], bool] | None = None
        self._carried_out = False

    def hold(self, wanted: Callable[[str, str], bool], *, carried_out: bool = False) -> None:
        """Hold the first request whose method and path `wanted` accepts; one that is `carried_out` lacks its answer."""
        self.held.clear()
        self._wanted = wanted
        self._carried_out = carried_out

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if self._wanted is not None and self._wanted(request.method, request.path):
            self._wanted = None
            if self._carried_out:
                async with self._passed(request, body) as answer:
                    await answer.read()
            self.held.set()
            # Cancelled when its sender is gone.
            await asyncio.Event().wait()
        async with self._passed(request, body) as answer:
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
            )
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    def _passed(self, request: web.Request, body: bytes) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        url = URL(self._server + request.raw_path, encoded=True)
        return self._session.request(request.method, url, data=body or None, headers=headers)


@asynccontextmanager
async def holding_proxy(*, before: Path, kubeconfig: Path) -> AsyncIterator[HoldingProxy]:
    """Yield a proxy before the server of one kubeconfig; another one is written that leads to the proxy."""
    access = await (await load_connection(before)).access()
    connector = aiohttp.TCPConnector(ssl=access.tls or True, limit=0)
    credentials = {"Authorization": access.authorization or ""}
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, headers=credentials, timeout=timeout) as session:
        proxy = HoldingProxy(access.server, session)
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]
            _write_config(kubeconfig, f"http://127.0.0.1:{port}")
            yield proxy
        finally:
            await runner.cleanup()


def _write_config(path: Path, server: str) -> None:
    name = "proxy"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": TEAM}}],
    }
    path.write_bytes(orjson.dumps(config))
