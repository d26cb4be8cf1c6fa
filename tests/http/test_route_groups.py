"""Groups of routes on one server, each behind its own authentication."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp import web

from kardinal.runtime.routes import HttpRoute, RouteGroup, unauthenticated
from kardinal_controller.http import HttpServer
from kardinal_controller.http.problem import ProblemError


def behind(token: str) -> Callable[[web.Request], AbstractAsyncContextManager[str]]:
    """Return the authentication that believes one token, and gives the handler the user that it stands for."""

    @asynccontextmanager
    async def authenticated(request: web.Request) -> AsyncIterator[str]:
        if request.headers.get("Authorization") != f"Bearer {token}":
            raise ProblemError(HTTPStatus.UNAUTHORIZED, f"send {token}")
        yield f"user of {token}"

    return authenticated


async def greet(_: web.Request, user: str) -> web.Response:
    return web.Response(text=f"hello {user}")


async def fine(_: web.Request, __: None) -> web.Response:
    return web.Response(text="fine")


async def test_each_group_is_behind_its_own_authentication(session: aiohttp.ClientSession) -> None:
    stopped = []

    async def stop() -> None:
        stopped.append("pages")

    groups: list[RouteGroup[Any]] = [
        RouteGroup((HttpRoute("GET", "/pages/{name}", greet),), behind("page-word"), stop=stop),
        RouteGroup((HttpRoute("POST", "/posts", greet),), behind("post-word")),
        RouteGroup((HttpRoute("GET", "/open", fine),), unauthenticated),
    ]
    server = HttpServer(groups, address="127.0.0.1:0", per_address=0)
    await server.start()
    try:
        page = {"Authorization": "Bearer page-word"}
        async with session.get(f"{server.url}/pages/one", headers=page) as answer:
            assert await answer.text() == "hello user of page-word"
        async with session.post(f"{server.url}/posts", headers=page) as answer:
            assert answer.status == 401
            assert answer.content_type == "application/problem+json"
            assert (await answer.json())["detail"] == "send post-word"
        async with session.get(f"{server.url}/posts", headers=page) as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        async with session.get(f"{server.url}/open") as answer:
            assert await answer.text() == "fine"
        assert stopped == []
    finally:
        await server.stop()
    assert stopped == ["pages"]
