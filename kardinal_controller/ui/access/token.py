"""Access by a bearer token, which is pasted once: `--ui-auth=token`.

The API server reviews the token at log in, and again when its last answer is older than 60 seconds; before a stream
goes on, at once. So a token that was revoked ends its session. The viewer's own client is made of the token alone: no
certificate of the controller goes with it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from aiohttp import web

from kardinal.bounded.documents import NotJson, OverLimit, decode
from kardinal.bounded.limits import JsonLimits
from kardinal.clock import Clock
from kardinal.kube import Client, Connection
from kardinal.runtime.addresses import network_of
from kardinal.runtime.rate import RateLimit
from kardinal.runtime.recent_answers import RecentAnswers
from kardinal.runtime.routes import HttpRoute, RouteGroup, unauthenticated
from kardinal_controller.ui.access.cookies import SESSION_SECONDS, TOKEN_LIMIT, SessionCookies, TokenSession
from kardinal_controller.ui.access.refusal import Refusal, check_same_origin, read_log_in
from kardinal_controller.ui.access.reviews import LIFETIME, Person, Reception, Reviews
from kardinal_controller.ui.access.seat import SESSION_PATH, Seat
from kardinal_controller.ui.model import LoggedIn

__all__ = ["TokenAccess"]

FRESH = 5.0
"""The age in seconds up to which an answer is used before a stream goes on."""
PEOPLE = 1_024
"""The most tokens whose users are remembered, by their hashes."""
LOG_INS = 20
ALL_LOG_INS = 120
"""The log ins a minute and address, and of all addresses, that the API server is asked about."""

_CLAIMS = JsonLimits(size=TOKEN_LIMIT, depth=16, containers=256, pieces=2_048)
_PASTE = "Paste a token, for example of: kubectl create token NAME -n NAMESPACE"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _TokenSeat(Seat):
    session: TokenSession = field(repr=False)
    person: Person


class TokenAccess:
    """The access of viewers with bearer tokens.

    `cookies` returns the cookies once the key is read, which is when the program has started. `behind_tls`: a proxy
    before this server ends TLS.
    """

    def __init__(
        self,
        client: Client,
        *,
        reviews: Reviews,
        reception: Reception,
        cookies: Callable[[], SessionCookies],
        clock: Clock,
        base_path: str = "",
        behind_tls: bool = False,
    ) -> None:
        self._client = client
        self._reviews = reviews
        self._reception = reception
        self._cookies = cookies
        self._clock = clock
        self._base_path = base_path
        self._behind_tls = behind_tls
        # By the hash of a token, so that no valid token is in memory longer than its request.
        self._people = RecentAnswers[Person | None](clock=clock, most=PEOPLE)
        self._log_ins = RateLimit(limit=LOG_INS, window=60.0, clock=clock)
        self._all_log_ins = RateLimit(limit=ALL_LOG_INS, window=60.0, clock=clock)

    @property
    def groups(self) -> Sequence[RouteGroup[Any]]:
        """Return the routes of log in and log out."""
        path = f"{self._base_path}{SESSION_PATH}"
        routes = (HttpRoute("POST", path, self._log_in), HttpRoute("DELETE", path, self._log_out))
        return (RouteGroup(routes, unauthenticated, stop=self._stop),)

    @asynccontextmanager
    async def authenticated(self, request: web.Request) -> AsyncIterator[Seat]:
        """Enter the seat of the session cookie; raises `Refusal`."""
        check_same_origin(request)
        session = self._cookies().read(request.cookies)
        if session is None:
            raise _not_logged_in("you are not logged in, or the session has ended")
        person = await self._person(session.token, max_age=LIFETIME)
        if person is None:
            raise _not_logged_in("the API server does not accept the token any more")
        viewer = await self._reception.viewer(person, auth="token")
        access = (await self._client.connection.access()).with_token(session.token)
        async with Client(Connection(access), user_agent="kardinal-ui") as own:
            yield _TokenSeat(
                viewer=viewer, lists=self._reception.lists(person), client=own, session=session, person=person
            )

    async def still_valid(self, seat: Seat) -> str:
        """Return an empty text, or the reason why the stream of a seat ends."""
        if not isinstance(seat, _TokenSeat) or seat.session.ends_at <= self._clock.now().timestamp():
            return "the session has ended"
        try:
            if await self._person(seat.session.token, max_age=FRESH) != seat.person:
                return "the API server does not accept the token any more"
            return await self._reception.problem(seat.person, seat.viewer)
        except Refusal:
            return "the API server did not say whether you may go on"

    async def _log_in(self, request: web.Request, _: None) -> web.Response:
        check_same_origin(request)
        self._refuse_plain(request)
        token = ((await read_log_in(request)).token or "").strip()
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise _not_logged_in("this is no bearer token")
        if len(token) > TOKEN_LIMIT:
            raise Refusal(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the token has more than {TOKEN_LIMIT:,} characters, and would not fit into the cookies of a browser",
                remedy="Paste that of a ServiceAccount, or put a proxy before the page: --ui-auth=proxy.",
            )
        if wait := self._log_ins.admit(network_of(request.remote)) or self._all_log_ins.admit(""):
            raise Refusal(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too many log ins",
                remedy=f"Try again in {wait} s.",
                headers={"Retry-After": str(wait)},
            )
        now = int(self._clock.now().timestamp())
        ends_at = min(now + SESSION_SECONDS, _expiry(token) or now + SESSION_SECONDS)
        person = await self._person(token, max_age=FRESH)
        if person is None or ends_at <= now:
            raise _not_logged_in("the API server does not accept this token")
        logged_in = LoggedIn(viewer=await self._reception.viewer(person, auth="token"))
        answer = _json(logged_in)
        self._cookies().write(answer, TokenSession(token, ends_at), secure=self._is_secure(request))
        return answer

    async def _log_out(self, request: web.Request, _: None) -> web.Response:
        check_same_origin(request)
        answer = web.Response(status=HTTPStatus.NO_CONTENT, headers={"Cache-Control": "no-store"})
        self._cookies().clear(answer, secure=self._is_secure(request))
        return answer

    async def _person(self, token: str, *, max_age: float) -> Person | None:
        key = hashlib.sha256(token.encode()).digest()
        return await self._people.get(key, lambda: self._reviews.person_of(token), max_age=max_age)

    async def _stop(self) -> None:
        await self._people.stop()
        await self._reception.rights.stop()

    def _is_secure(self, request: web.Request) -> bool:
        return self._behind_tls or request.secure

    def _refuse_plain(self, request: web.Request) -> None:
        """Refuse a token that has come over a network in plain text."""
        if not self._is_secure(request) and not _is_loopback(request.remote):
            raise Refusal(
                HTTPStatus.FORBIDDEN,
                "a token is not accepted over plain HTTP",
                remedy="Give the controller --ui-tls-cert-file and --ui-tls-key-file, or --ui-behind-tls where a proxy "
                "ends TLS. That token has been sent in plain text: revoke it.",
            )


def _is_loopback(address: str | None) -> bool:
    try:
        return ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False


def _json(document: LoggedIn) -> web.Response:
    return web.Response(
        body=document.model_dump_json(exclude_none=True).encode(),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )


def _not_logged_in(message: str) -> Refusal:
    return Refusal(HTTPStatus.UNAUTHORIZED, message, remedy=_PASTE, auth="token")


def _expiry(token: str) -> int | None:
    """Return the time at which a JWT expires, in seconds since 1970; None for a token that does not say.

    The signature is not verified here: the API server has done so, and a forged time could only shorten the session.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), _CLAIMS)
        expiry = claims.get("exp") if isinstance(claims, dict) else None
    except (binascii.Error, ValueError, NotJson, OverLimit):
        return None
    return int(expiry) if isinstance(expiry, int | float) and 0 <= expiry < 1 << 40 else None
