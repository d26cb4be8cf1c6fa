"""Groups of HTTP routes: a server is composed of them, and each has its own authentication.

    scrapes = RouteGroup((Route("GET", "/metrics", answer),), authenticated=by_token)

The authentication is entered before the handler and left after it, and passes its result, for example the user, to the
handler. It reads the body if a signature covers it. So the authentication also sets the limits on bodies, which depend
on the knowledge about the client before its body is read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from aiohttp import web

__all__ = ["HttpRoute", "RouteGroup", "add_routes", "unauthenticated"]

T = TypeVar("T")


async def _nothing_to_stop() -> None:
    pass


@dataclass(frozen=True, slots=True)
class HttpRoute(Generic[T]):
    """One method of one path, for example `GET` of `/readyz/{check}`; GET also answers HEAD."""

    method: str
    path: str
    answer: Callable[[web.Request, T], Awaitable[web.StreamResponse]]
    """The handler: called with the request and the result of the group's authentication."""


@dataclass(frozen=True, slots=True)
class RouteGroup(Generic[T]):
    """Routes with the same authentication."""

    routes: Sequence[HttpRoute[T]]
    authenticated: Callable[[web.Request], AbstractAsyncContextManager[T]]
    """The authentication of a request; raises the answer if it refuses the request."""
    stop: Callable[[], Awaitable[None]] = _nothing_to_stop
    """Ends the background work of the group, after the last request was answered; defaults to nothing."""


@asynccontextmanager
async def unauthenticated(_: web.Request) -> AsyncIterator[None]:
    """Accept every request: the authentication of a group that needs none."""
    yield


def add_routes(router: web.UrlDispatcher, groups: Sequence[RouteGroup[Any]]) -> None:
    """Add the routes of all groups to the router of an application."""
    for group in groups:
        for route in group.routes:
            handler = _behind(group, route)
            if route.method == "GET":
                router.add_get(route.path, handler)
            else:
                router.add_route(route.method, route.path, handler)


def _behind(group: RouteGroup[T], route: HttpRoute[T]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        async with group.authenticated(request) as found:
            return await route.answer(request, found)

    return handler
