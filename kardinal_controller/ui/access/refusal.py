"""The refusal of a request, and the checks that come before authentication.

A page of another origin can make a browser send requests here. It cannot read answers or set headers, but a request
with a cookie could change something, and after DNS rebinding the browser takes this server for the other origin. So the
browser's own words are checked: `Sec-Fetch-Site`, `Origin` and, on loopback, `Host`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal
from urllib.parse import urlsplit

from aiohttp import web
from pydantic import ValidationError

from kardinal_controller.ui.model import LogIn, PageError

__all__ = ["Refusal", "check_loopback_host", "check_same_origin", "read_body", "read_log_in"]

BODY_LIMIT = 16 * 1024
"""The maximum size of a body in bytes."""
BODY_SECONDS = 10.0
"""The time in seconds for a body to arrive."""

_SAFE = frozenset({"GET", "HEAD"})


class Refusal(web.HTTPException):
    """An unsuccessful answer with a `PageError`. `message` and `remedy` contain no credential."""

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        *,
        remedy: str,
        auth: Literal["token", "proxy", "kubeconfig"] | None = None,
        command: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status_code = status.value
        super().__init__(
            headers={"Cache-Control": "no-store", **(headers or {})},
            text=PageError(message=message, remedy=remedy, auth=auth, command=command).model_dump_json(
                exclude_none=True
            ),
            content_type="application/json",
        )


def check_same_origin(request: web.Request) -> None:
    """Raise `Refusal` 403 for a request that a page of another origin has made."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        # Computed by the browser, so it also holds behind a proxy that changes Host.
        foreign = site != "same-origin" and not (site == "none" and request.method in _SAFE)
    else:
        origin = request.headers.get("Origin")
        foreign = origin is not None and _host_of(origin) != request.headers.get("Host", "").lower()
    if foreign:
        raise Refusal(
            HTTPStatus.FORBIDDEN, "the request comes from a page of another origin", remedy="Open the page itself."
        )


def check_loopback_host(request: web.Request) -> None:
    """Raise `Refusal` 403 unless Host names this machine, as after DNS rebinding."""
    transport = request.transport
    bound = transport.get_extra_info("sockname") if transport is not None else None
    port = bound[1] if bound else 0
    named = request.headers.get("Host", "").lower()
    if named not in {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}:
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            "the page is served to this machine alone",
            remedy=f"Open it as http://127.0.0.1:{port}, by the link that was printed.",
        )


def _host_of(origin: str) -> str:
    """Return `host[:port]` of an origin in lower case; empty for `null` and for what is no URL."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


async def read_body(request: web.Request) -> bytes:
    """Return the JSON body of a request. Raises `Refusal` for another media type, and for one too large or too slow."""
    # No form of another origin can send this media type without being asked first.
    if request.content_type != "application/json":
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is not JSON", remedy="Send Content-Type: application/json."
        )
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > BODY_LIMIT:
                    raise Refusal(
                        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                        f"the body has more than {BODY_LIMIT:,} bytes",
                        remedy="Send less.",
                    )
    except TimeoutError:
        raise Refusal(
            HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {BODY_SECONDS:.0f} s", remedy="Try again."
        ) from None
    return bytes(body)


async def read_log_in(request: web.Request) -> LogIn:
    """Return the body of a log in. Raises `Refusal`, which quotes nothing of it."""
    body = await read_body(request)
    try:
        return LogIn.model_validate_json(body)
    except ValidationError:
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            "the body of a log in has a token or a code",
            remedy='Send {"token": "…"}, or {"code": "…"}.',
        ) from None
