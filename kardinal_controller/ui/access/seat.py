"""The seat of a viewer: who looks, what they may list, and the client that reads and writes with their own identity.

`Access` is the authentication of all routes of the page. There are three: a bearer token, a proxy, a kubeconfig.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web

from kardinal.kube import Client
from kardinal.objects import ResourceType
from kardinal.runtime.routes import RouteGroup
from kardinal_controller.ui.model import Viewer

__all__ = ["SESSION_HEADER", "SESSION_PATH", "Access", "Seat"]

SESSION_PATH = "/api/ui/v1/session"
"""The path of log in and log out, below the base path of the page."""
SESSION_HEADER = "X-Kardinal-Session"
"""The header of the secret that a page of `kardinal ui` keeps for its tab."""


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """The viewer of one request, or of one stream.

    `client` has the identity of the viewer, never that of the controller. It is None if the page knows no credential
    of the viewer, as behind a proxy; it is closed when the request ends.
    """

    viewer: Viewer
    lists: Callable[[ResourceType, str], Awaitable[bool]]
    client: Client | None = None

    async def may_list(self, resource: ResourceType, namespace: str) -> bool:
        """Return whether the viewer may list a kind in a namespace. The answer is at most 60 seconds old."""
        return await self.lists(resource, namespace)


class Access(Protocol):
    """The authentication of viewers.

    `authenticated` has the shape of `RouteGroup.authenticated`: it raises the answer to a request that it refuses.
    """

    def authenticated(self, request: web.Request) -> AbstractAsyncContextManager[Seat]:
        """Return the seat of a request, and close it when the request was answered."""
        ...

    async def still_valid(self, seat: Seat) -> str:
        """Return an empty text, or the reason why the stream of this seat ends."""
        ...

    @property
    def groups(self) -> Sequence[RouteGroup[Any]]:
        """The routes of log in and log out."""
        ...
