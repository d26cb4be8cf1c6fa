"""A server of the page beside a world, with an access that believes what a request says about its viewer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp import web

from kardinal.git import GitRunner
from kardinal.kube import Client
from kardinal.objects import ResourceType
from kardinal.runtime import Manager
from kardinal.runtime.routes import RouteGroup
from kardinal_controller.caches import Caches
from kardinal_controller.ui.access import Access, Refusal, Seat
from kardinal_controller.ui.model import Viewer
from kardinal_controller.ui.server import PageServer
from tests.support.world import World
from tests.ui.reading import parse_events, read_events

__all__ = ["Believing", "Following", "Program", "follow", "start_page"]


@dataclass(eq=False)
class Believing:
    """An access whose viewers are named by the header `X-Viewer`.

    `hidden` are pairs of a kind's plural and a namespace that no viewer may list; a kind "" stands for all.
    """

    client: Client | None = None
    hidden: set[tuple[str, str]] = field(default_factory=set)
    ended: str = ""
    groups: Sequence[RouteGroup[Any]] = ()

    @asynccontextmanager
    async def authenticated(self, request: web.Request) -> AsyncIterator[Seat]:
        user = request.headers.get("X-Viewer", "ada")
        if user == "nobody":
            raise Refusal(HTTPStatus.UNAUTHORIZED, "you are not logged in", remedy="Log in.", auth="token")
        viewer = Viewer(
            user=user, groups=[], auth="token", may_act=False, reads_as_viewer=True, namespaces=[], version="1"
        )
        yield Seat(viewer=viewer, lists=self._lists, client=self.client)

    async def still_valid(self, seat: Seat) -> str:
        return self.ended

    async def _lists(self, resource: ResourceType, namespace: str) -> bool:
        return not {(resource.plural, namespace), ("", namespace)} & self.hidden


@dataclass(eq=False)
class Program:
    """The informers of a controller with the page, and no reconcilers."""

    manager: Manager
    page: PageServer
    access: Believing
    runner: GitRunner | None = None

    @property
    def api(self) -> str:
        return f"{self.page.url}/api/ui/v1"

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()


async def start_page(world: World, *, access: Access | None = None, **options: Any) -> Program:
    """Start the page of a world, with an access that believes its viewers if none is given."""
    believing = Believing(world.client)

    def build(client: Client) -> Program:
        manager = Manager(client, clock=world.clock, name="page")
        options.setdefault("address", "127.0.0.1:0")
        page = PageServer(Caches(manager), access or believing, clock=world.clock, **options)
        manager.add(page)
        return Program(manager, page, believing)

    return await world.run(build, identity="controller")


class Following:
    """A stream as the page reads it: the document so far, and the events."""

    def __init__(self) -> None:
        self.content = b""
        self.closed = False

    @property
    def document(self) -> dict[str, Any]:
        return read_events(self._whole, {})

    @property
    def events(self) -> list[dict[str, str]]:
        return parse_events(self._whole)

    @property
    def comments(self) -> int:
        return self._whole.count(b": still here\n\n")

    @property
    def last_id(self) -> str:
        return next((event["id"] for event in reversed(self.events) if "id" in event), "")

    @property
    def _whole(self) -> bytes:
        return self.content[: self.content.rfind(b"\n\n") + 2]

    async def read(self, answer: aiohttp.ClientResponse) -> None:
        with suppress(aiohttp.ClientError):
            async for chunk in answer.content.iter_any():
                self.content += chunk
        self.closed = True


@asynccontextmanager
async def follow(
    session: aiohttp.ClientSession, url: str, *, headers: dict[str, str] | None = None
) -> AsyncIterator[Following]:
    """Read a stream for as long as the block lasts."""
    following = Following()
    async with session.get(url, headers=headers) as answer:
        assert answer.status == HTTPStatus.OK, await answer.text()
        reading = asyncio.create_task(following.read(answer))
        try:
            yield following
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
