"""Access by an authenticating proxy before the page: `--ui-auth=proxy`.

The proxy names the viewer in `X-Forwarded-User` and `X-Forwarded-Groups`. Every client that reaches the port could send
these headers, so they are believed only on a connection whose client certificate an authority of `--ui-proxy-client-ca`
has signed. The proxy sets both headers itself, and drops what the browser sent.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web

from kardinal.runtime.routes import RouteGroup, unauthenticated
from kardinal_controller.ui.access.refusal import Refusal, check_same_origin
from kardinal_controller.ui.access.reviews import Person, Reception
from kardinal_controller.ui.access.seat import Seat

__all__ = ["GROUPS_HEADER", "USER_HEADER", "ProxyAccess", "require_client_certificate"]

USER_HEADER = "X-Forwarded-User"
GROUPS_HEADER = "X-Forwarded-Groups"
GROUPS = 1_000
"""The most groups of a viewer."""
NAME_LIMIT = 512
"""The maximum length of the name of a user or group."""
EVERYONE = "system:authenticated"
"""The group that the API server adds to every user it has authenticated."""

_RESERVED = "system:"


def require_client_certificate(context: ssl.SSLContext, authorities: Path) -> None:
    """Have a server accept connections only with a client certificate of one of the authorities in a file.

    Raises OSError, for example ssl.SSLError, for a file that cannot be read or holds no certificate.
    """
    context.load_verify_locations(cafile=authorities)
    context.verify_mode = ssl.CERT_REQUIRED


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _ProxySeat(Seat):
    person: Person


class ProxyAccess:
    """The access of viewers that a proxy has authenticated."""

    def __init__(self, *, reception: Reception) -> None:
        self._reception = reception

    @property
    def groups(self) -> Sequence[RouteGroup[Any]]:
        """Return a group without routes: log in and log out are the proxy's."""
        return (RouteGroup((), unauthenticated, stop=self._reception.rights.stop),)

    @asynccontextmanager
    async def authenticated(self, request: web.Request) -> AsyncIterator[Seat]:
        """Enter the seat of the headers of a proxy; raises `Refusal`."""
        check_same_origin(request)
        if not _is_certified(request):
            raise _unknown(
                "the names of users are believed from the proxy alone, which presents a client certificate",
                "Open the page by the address of the proxy.",
            )
        person = _person(request)
        viewer = await self._reception.viewer(person, auth="proxy")
        yield _ProxySeat(viewer=viewer, lists=self._reception.lists(person), person=person)

    async def still_valid(self, seat: Seat) -> str:
        """Return an empty text, or the reason why the stream of a seat ends."""
        if not isinstance(seat, _ProxySeat):
            return "the session has ended"
        try:
            return await self._reception.problem(seat.person, seat.viewer)
        except Refusal:
            return "the API server did not say whether you may go on"


def _is_certified(request: web.Request) -> bool:
    """Return whether the connection has a client certificate that the TLS library has verified."""
    transport = request.transport
    if transport is None:
        return False
    tls = transport.get_extra_info("ssl_object")
    if tls is None or tls.context.verify_mode is not ssl.CERT_REQUIRED:
        return False
    return bool(transport.get_extra_info("peercert"))


def _person(request: web.Request) -> Person:
    users = request.headers.getall(USER_HEADER, [])
    name = users[0].strip() if len(users) == 1 else ""
    if not name:
        raise _unknown(f"the proxy sent {len(users)} headers {USER_HEADER}, and not one with a name", _CONFIGURE)
    listed = [each.strip() for line in request.headers.getall(GROUPS_HEADER, []) for each in line.split(",")]
    groups = dict.fromkeys(each for each in listed if each)
    names = (name, *groups)
    if len(groups) > GROUPS or any(len(each) > NAME_LIMIT or not each.isprintable() for each in names):
        raise _unknown("the names that the proxy sent are too long or too many, or not printable", _CONFIGURE)
    if any(each.startswith(_RESERVED) for each in names):
        # A group system:masters of some directory would otherwise be the administrators of the cluster.
        raise _unknown(f"a name that the proxy sent begins with {_RESERVED}, which is the cluster's own", _CONFIGURE)
    return Person(name, (*groups, EVERYONE))


_CONFIGURE = f"Configure the proxy: one {USER_HEADER} with the name, {GROUPS_HEADER} with commas between groups."


def _unknown(message: str, remedy: str) -> Refusal:
    return Refusal(HTTPStatus.UNAUTHORIZED, message, remedy=remedy, auth="proxy")
