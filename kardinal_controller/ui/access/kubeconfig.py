"""Access by a link with a one-time code, for `kardinal ui` and `kardinal local up` on loopback.

The code stands in the fragment of the link, which browsers send to no server. The page exchanges it once for a secret,
keeps that for its tab, and sends it as a header with each request. There is no cookie: a cookie of loopback reaches
every port of the machine. What is read and done is done as the user of a kubeconfig.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from aiohttp import web

from kardinal.kube import Client
from kardinal.runtime.routes import HttpRoute, RouteGroup, unauthenticated
from kardinal_controller.ui.access.refusal import Refusal, check_loopback_host, check_same_origin, read_log_in
from kardinal_controller.ui.access.reviews import Person, Reception
from kardinal_controller.ui.access.seat import SESSION_HEADER, SESSION_PATH, Seat
from kardinal_controller.ui.model import LoggedIn

__all__ = ["KubeconfigAccess"]

CODES = 16
"""The most codes that are not used yet; beyond it the oldest is not accepted any more."""
SESSIONS = 64
"""The most sessions; beyond it the oldest ends."""

_NEW_LINK = "Open a new link: kardinal ui"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _OwnSeat(Seat):
    digest: bytes = field(repr=False)


class KubeconfigAccess:
    """The access of the user of `client`, whose name is `person`."""

    def __init__(self, client: Client, *, person: Person, reception: Reception, base_path: str = "") -> None:
        self._client = client
        self._person = person
        self._reception = reception
        self._base_path = base_path
        # Only digests are kept, and compared in constant time.
        self._codes: list[bytes] = []
        self._sessions: list[bytes] = []

    @property
    def groups(self) -> Sequence[RouteGroup[Any]]:
        """Return the routes of log in and log out."""
        path = f"{self._base_path}{SESSION_PATH}"
        routes = (HttpRoute("POST", path, self._log_in), HttpRoute("DELETE", path, self._log_out))
        return (RouteGroup(routes, unauthenticated, stop=self._reception.rights.stop),)

    def link(self, url: str) -> str:
        """Return the link to the page at the URL of its server, with a new one-time code."""
        code = secrets.token_urlsafe(32)
        self._codes = [*self._codes, _digest(code)][-CODES:]
        return f"{url}{self._base_path}/ui/#code={code}"

    @asynccontextmanager
    async def authenticated(self, request: web.Request) -> AsyncIterator[Seat]:
        """Enter the seat of a request with the secret of a session; raises `Refusal`."""
        check_loopback_host(request)
        check_same_origin(request)
        digest = _digest(request.headers.get(SESSION_HEADER, ""))
        if not _is_among(digest, self._sessions):
            raise _not_logged_in("this page has no session, or it has ended")
        viewer = await self._reception.viewer(self._person, auth="kubeconfig")
        yield _OwnSeat(viewer=viewer, lists=self._reception.lists(self._person), client=self._client, digest=digest)

    async def still_valid(self, seat: Seat) -> str:
        """Return an empty text, or the reason why the stream of a seat ends."""
        if not isinstance(seat, _OwnSeat) or not _is_among(seat.digest, self._sessions):
            return "the session has ended"
        try:
            return await self._reception.problem(self._person, seat.viewer)
        except Refusal:
            return "the API server did not say whether you may go on"

    async def _log_in(self, request: web.Request, _: None) -> web.Response:
        check_loopback_host(request)
        check_same_origin(request)
        code = _digest((await read_log_in(request)).code or "")
        if not _is_among(code, self._codes):
            raise _not_logged_in("the code of this link is not valid, or was used already")
        # Used before anything is awaited, so that two requests cannot use it.
        self._codes = [each for each in self._codes if each != code]
        secret = secrets.token_urlsafe(32)
        self._sessions = [*self._sessions, _digest(secret)][-SESSIONS:]
        logged_in = LoggedIn(viewer=await self._reception.viewer(self._person, auth="kubeconfig"), secret=secret)
        return web.Response(
            body=logged_in.model_dump_json(exclude_none=True).encode(),
            content_type="application/json",
            headers={"Cache-Control": "no-store"},
        )

    async def _log_out(self, request: web.Request, _: None) -> web.Response:
        check_loopback_host(request)
        check_same_origin(request)
        digest = _digest(request.headers.get(SESSION_HEADER, ""))
        self._sessions = [each for each in self._sessions if not hmac.compare_digest(each, digest)]
        return web.Response(status=HTTPStatus.NO_CONTENT, headers={"Cache-Control": "no-store"})


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _is_among(digest: bytes, known: Sequence[bytes]) -> bool:
    return any(hmac.compare_digest(digest, each) for each in known)


def _not_logged_in(message: str) -> Refusal:
    return Refusal(HTTPStatus.UNAUTHORIZED, message, remedy=_NEW_LINK, auth="kubeconfig")
