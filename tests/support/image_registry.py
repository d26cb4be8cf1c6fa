"""An image registry with its token service on loopback, by the distribution specification of OCI."""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.endpoint import Handler, Heard

__all__ = ["ImageRegistry", "digest_of", "serving_registry"]

TOKEN = "token-of-the-registry"


def digest_of(manifest: bytes) -> str:
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


@dataclass
class ImageRegistry:
    """`tags` are the manifests by `path:tag`; `login` is asked for with a token where `tokens`, else by Basic."""

    tags: dict[str, bytes] = field(default_factory=dict)
    login: str | None = None
    tokens: bool = False
    realm: str = ""
    """The token service that is named; by default the registry's own."""
    tells_digests: bool = True
    answer: Handler | None = None
    """The handler that answers instead, where it is there."""
    heard: list[Heard] = field(default_factory=list)
    port: int = 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def push(self, path: str, tag: str, manifest: bytes) -> str:
        """Let a tag be a manifest; returns its digest."""
        self.tags[f"{path}:{tag}"] = manifest
        return digest_of(manifest)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.heard.append(Heard(request.method, request.path_qs, headers, await request.read()))
        if request.path == "/token":
            return self._token(request)
        if self.answer is not None:
            return await self.answer(request)
        if not self._may_read(request):
            return web.Response(status=401, headers={"WWW-Authenticate": self._challenge()})
        path, _, tag = request.path.removeprefix("/v2/").partition("/manifests/")
        manifest = self.tags.get(f"{path}:{tag}")
        if manifest is None:
            return web.json_response({"errors": [{"code": "MANIFEST_UNKNOWN"}]}, status=404)
        told = {"Docker-Content-Digest": digest_of(manifest)} if self.tells_digests else {}
        return web.Response(body=manifest, headers=told, content_type="application/vnd.oci.image.manifest.v1+json")

    def _challenge(self) -> str:
        if not self.tokens:
            return 'Basic realm="registry"'
        realm = self.realm or f"http://{self.host}/token"
        return f'Bearer realm="{realm}",service="registry.example.com",scope="repository:x:pull,push"'

    def _may_read(self, request: web.Request) -> bool:
        shown = request.headers.get("Authorization", "")
        if self.tokens:
            return shown == f"Bearer {TOKEN}"
        return self.login is None or shown == self._basic()

    def _token(self, request: web.Request) -> web.Response:
        if self.login is not None and request.headers.get("Authorization") != self._basic():
            return web.json_response({"details": "not you"}, status=401)
        return web.json_response({"token": TOKEN, "expires_in": 300})

    def _basic(self) -> str:
        return f"Basic {base64.b64encode((self.login or '').encode()).decode()}"


@asynccontextmanager
async def serving_registry(*, tls: ssl.SSLContext | None = None, **fields: Any) -> AsyncIterator[ImageRegistry]:
    """Serve a registry until the end of the block."""
    registry = ImageRegistry(**fields)
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", registry.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    registry.port = runner.addresses[0][1]
    try:
        yield registry
    finally:
        await runner.cleanup()
