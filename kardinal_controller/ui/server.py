"""The server of the page: one address with the page, its API and the routes of log in, and nothing else.

Every answer has headers that keep a browser from running scripts of others, and from showing the page inside another
one. Every unsuccessful answer is a `PageError`.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from importlib.metadata import version as package_version
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web

from kardinal.clock import Clock
from kardinal.kube import KubeError
from kardinal.promotion.views.missing import NotThere
from kardinal.runtime.listener import Listener
from kardinal.runtime.logging import describe, get_logger
from kardinal.runtime.routes import RouteGroup, add_routes
from kardinal_controller.caches import Caches
from kardinal_controller.ui.access.refusal import BODY_LIMIT, Refusal
from kardinal_controller.ui.access.seat import Access
from kardinal_controller.ui.assets import BUILT, Assets
from kardinal_controller.ui.certificate import CertificateFiles, ServerCertificate
from kardinal_controller.ui.documents import NoGate
from kardinal_controller.ui.feed import Feed
from kardinal_controller.ui.openapi import API
from kardinal_controller.ui.routes import PageApi

__all__ = ["VERSION", "PageServer"]

VERSION = package_version("kardinal")
"""The version of this program; read at the import, because it is read from files."""

CONNECTIONS = 512
"""The most connections at once: streams, and the requests beside them."""

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        # Components place popups and rows by properties of `element.style`, which need no permission.
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_log = get_logger(__name__)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageServer:
    """The page on `address` (`host:port`, port 0 takes a free one). A runnable of the manager of `caches`.

    `any_host`: requests may name any host; without it, a server on loopback answers only to names of loopback.
    `groups` are further routes, such as those of actions.
    """

    def __init__(
        self,
        caches: Caches,
        access: Access,
        *,
        clock: Clock,
        address: str,
        base_path: str = "",
        argocd: str = "",
        certificate: CertificateFiles | None = None,
        any_host: bool = False,
        groups: tuple[RouteGroup[Any], ...] = (),
        directory: Path = BUILT,
    ) -> None:
        self._address = address
        self._prefix = f"{base_path}{API}/"
        self._any_host = any_host
        self._certificate: ServerCertificate | None = None
        if certificate is not None:
            self._certificate = ServerCertificate(certificate, clock=clock, renewed=self._renew)
        self.feed = Feed(caches, clock=clock)
        self._api = PageApi(self.feed, caches, access, clock=clock, version=VERSION, base_path=base_path, argocd=argocd)
        # That of the assets has a path for everything else, so it is the last one.
        self._groups: list[RouteGroup[Any]] = [
            *access.groups,
            *groups,
            *self._api.groups(),
            Assets(directory=directory, base_path=base_path).group(),
        ]
        self._listener = Listener(most=CONNECTIONS, shutdown_seconds=1.0)
        self.url = ""

    async def start(self) -> None:
        await self.feed.start()
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[self._answered])
        app.on_response_prepare.append(self._protect)
        add_routes(app.router, self._groups)
        tls = await self._certificate.start() if self._certificate is not None else None
        self.url = await self._listener.start(app, self._address, tls=tls)

    async def stop(self) -> None:
        """End the streams at once, then the requests in progress."""
        await self._api.stop()
        await self._listener.stop()
        if self._certificate is not None:
            await self._certificate.stop()
        for group in self._groups:
            await group.stop()
        await self.feed.stop()

    async def _renew(self, tls: ssl.SSLContext) -> None:
        """Leave no connection that an authority has opened which may be believed no more."""
        await self._listener.renew(tls)
        self._api.end_streams("the certificates of the page have changed")

    async def _protect(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(_HEADERS)
        if request.path.startswith(self._prefix):
            response.headers["Cache-Control"] = "no-store"
        if request.secure:
            response.headers["Strict-Transport-Security"] = "max-age=31536000"

    @web.middleware
    async def _answered(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Turn every unsuccessful answer into a `PageError`."""
        try:
            self._check_host(request)
            self._check_certificate(request)
            return await handler(request)
        except (NotThere, NoGate) as missing:
            raise Refusal(HTTPStatus.NOT_FOUND, missing.message, remedy=missing.remedy) from None
        except (Refusal, ConnectionError):
            # With a ConnectionError the viewer has left before the answer began, and aiohttp ends the connection.
            raise
        except web.HTTPException as error:
            allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            raise Refusal(
                HTTPStatus(error.status), error.reason, remedy="The paths are in docs/design/page.md.", headers=allow
            ) from None
        except KubeError as error:
            _log.warning("a request of the page failed", error=type(error).__name__)
            raise Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "the API server did not answer",
                remedy="Try again.",
                headers={"Retry-After": "5"},
            ) from None
        except Exception as error:
            _log.error("a request of the page failed by a bug", **describe(error))
            raise Refusal(
                HTTPStatus.INTERNAL_SERVER_ERROR, "the request failed by a bug", remedy="The log has the reason."
            ) from None

    def _check_host(self, request: web.Request) -> None:
        """Refuse a name of another host on loopback, as after DNS rebinding; a port that is forwarded may be any."""
        if self._any_host or not _is_loopback(urlsplit(self.url).hostname or ""):
            return
        try:
            name = urlsplit(f"//{request.headers.get('Host', '')}").hostname or ""
        except ValueError:
            name = ""
        if name != "localhost" and not _is_loopback(name):
            raise Refusal(
                HTTPStatus.FORBIDDEN,
                "the page is served to this machine alone",
                remedy="Open it as http://127.0.0.1, or give --ui-listen-address another address.",
            )

    def _check_certificate(self, request: web.Request) -> None:
        """Refuse a connection of before, whose handshake was still going on when the certificates changed."""
        if self._certificate is None or self._certificate.protects(request):
            return
        refusal = Refusal(
            HTTPStatus.SERVICE_UNAVAILABLE, "the certificates of the page have changed", remedy="Connect again."
        )
        refusal.force_close()
        raise refusal


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
