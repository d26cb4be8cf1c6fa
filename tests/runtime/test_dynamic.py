"""Watches that are opened at work: shared, ended after their last user, and clear about what cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import NoReturn

import pytest
from aiohttp import web

from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import JsonObject
from kardinal.runtime import Event, Handle, Manager
from kardinal.runtime.dynamic import LINGER
from tests.runtime.apiserver import WIDGET, WidgetServer, event_line, refusal
from tests.runtime.conftest import turns, until
from tests.support.clock import VirtualClock

A_LITTLE_LATER = timedelta(seconds=LINGER)


class Viewer:
    """A user of widgets that notes which of them moved, and counts how often there is news."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self.news = 0
        self.moved: list[str] = []

    def changed(self, event: Event | None) -> None:
        self.news += 1
        if event is not None:
            self.moved.append(f"{event.change} {event.key.name}")

    def open(self, namespace: str | None = "default", name: str | None = None) -> Handle:
        fields = f"metadata.name={name}" if name else None
        return self._manager.dynamic.open(WIDGET, namespaces=(namespace,), fields=fields, changed=self.changed)


@pytest.fixture
async def manager(client: Client, clock: VirtualClock) -> AsyncIterator[Manager]:
    made = Manager(client, clock=clock, name="test")
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def viewer(manager: Manager) -> Viewer:
    return Viewer(manager)


async def read(handle: Handle) -> None:
    async with asyncio.timeout(5):
        await handle.wait_read()


def names(handle: Handle) -> list[str]:
    return [obj["metadata"]["name"] for obj in handle.list()]


async def test_dynamic_informer_reads_and_reports_every_change(server: WidgetServer, viewer: Viewer) -> None:
    await server.put("a")
    handle = viewer.open()
    await read(handle)
    assert handle.synced
    assert names(handle) == ["a"]
    before = viewer.news
    await server.put("b")
    await until(lambda: viewer.news == before + 1)
    assert handle.get("default", "b") is not None
    await server.remove("a")
    await until(lambda: viewer.news == before + 2)
    assert names(handle) == ["b"]
    assert viewer.moved == ["ADDED b", "DELETED a"]
    handle.close()


async def test_the_same_scope_is_watched_once_and_another_apart(
    server: WidgetServer, manager: Manager, viewer: Viewer
) -> None:
    handles = [viewer.open(), viewer.open(), viewer.open(name="a"), viewer.open("other")]
    for handle in handles:
        await read(handle)
    assert server.verbs() == ["watchlist"] * 3
    asked = [(request["path"], request.get("fieldSelector")) for request in server.requests]
    assert asked == [
        ("/apis/example.com/v1/namespaces/default/widgets", None),
        ("/apis/example.com/v1/namespaces/default/widgets", "metadata.name=a"),
        ("/apis/example.com/v1/namespaces/other/widgets", None),
    ]
    assert len(manager.informers) == 3
    for handle in handles:
        handle.close()


async def test_a_watch_ends_a_little_after_its_last_user(
    server: WidgetServer, manager: Manager, viewer: Viewer, clock: VirtualClock
) -> None:
    first = viewer.open()
    second = viewer.open()
    await read(first)
    first.close()
    first.close()
    await clock.advance(A_LITTLE_LATER)
    assert len(manager.informers) == 1
    second.close()
    await clock.advance(A_LITTLE_LATER - timedelta(seconds=1))
    third = viewer.open()
    await clock.advance(A_LITTLE_LATER)
    assert server.verbs() == ["watchlist"]
    third.close()
    await clock.advance(A_LITTLE_LATER)
    assert manager.informers == []
    await until(lambda: not server.watching)
    again = viewer.open()
    await read(again)
    assert server.verbs() == ["watchlist"] * 2


async def test_a_closed_handle_hears_no_more(server: WidgetServer, manager: Manager) -> None:
    stays = Viewer(manager)
    goes = Viewer(manager)
    staying = stays.open()
    going = goes.open()
    await read(staying)
    await read(going)
    before = goes.news
    going.close()
    await server.put("a")
    await until(lambda: staying.get("default", "a"))
    assert (goes.news, going.list()) == (before, [])


async def test_a_projection_keeps_what_it_returns_and_is_a_scope_of_its_own(
    server: WidgetServer, manager: Manager
) -> None:
    def narrow(obj: JsonObject) -> JsonObject:
        return {"metadata": obj["metadata"], "spec": obj["spec"]}

    await server.put("a", spec=1, status="large")
    changed = Viewer(manager).changed
    narrowed = manager.dynamic.open(WIDGET, projection=narrow, changed=changed)
    whole = manager.dynamic.open(WIDGET, changed=changed)
    await read(narrowed)
    await read(whole)
    assert [sorted(obj) for obj in narrowed.list()] == [["metadata", "spec"]]
    assert "status" in whole.list()[0]
    await server.put("a", spec=2)
    await until(lambda: narrowed.list()[0]["spec"] == 2)
    assert "status" not in narrowed.list()[0]


@pytest.mark.parametrize("streamed", [True, False])
async def test_an_object_is_projected_before_the_rest_of_its_list_arrives(
    server: WidgetServer, manager: Manager, streamed: bool
) -> None:
    async def hang(_: web.Request) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError("the event never comes")

    async def first_part(request: web.Request) -> web.StreamResponse:
        if not streamed:
            server.fail_next("list", hang)
            return server._list(request)
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(event_line("ADDED", server.objects["default", "w0"]))
        return await hang(request)

    def projection(obj: JsonObject) -> JsonObject:
        projected.append(obj["metadata"]["name"])
        return obj

    projected: list[str] = []
    server.streams_lists = streamed
    for number in range(501):
        await server.put(f"w{number}")
    server.fail_next("watchlist" if streamed else "list", first_part)
    handle = manager.dynamic.open(WIDGET, projection=projection, changed=Viewer(manager).changed)
    await until(lambda: len(projected) == (1 if streamed else 500))
    assert not handle.synced


async def test_a_kind_that_is_not_served_is_told_and_seen_when_it_appears(
    server: WidgetServer, viewer: Viewer, clock: VirtualClock
) -> None:
    server.fail_next("watchlist", refusal(404, "NotFound"))
    server.fail_next("watchlist", refusal(404, "NotFound"))
    handle = viewer.open()
    await read(handle)
    assert handle.outage is not None
    assert isinstance(handle.outage.error, NotFound)
    assert handle.outage.since == clock.now()
    assert not handle.synced
    await server.put("a")
    before = viewer.news
    async with asyncio.timeout(5):
        while not handle.synced:
            clock.advance_to_next_timer()
            await turns()
    assert handle.outage is None
    assert names(handle) == ["a"]
    assert viewer.news > before


async def test_a_kind_that_vanishes_is_told(server: WidgetServer, viewer: Viewer) -> None:
    await server.put("a")
    handle = viewer.open()
    await read(handle)
    before = viewer.news
    for _ in range(2):
        server.fail_next("watch", refusal(404, "NotFound"))
    server.cut_watches()
    await until(lambda: handle.outage is not None)
    assert viewer.news > before


async def test_a_watch_that_is_not_allowed_says_so_at_once(server: WidgetServer, viewer: Viewer) -> None:
    server.fail_next("watchlist", refusal(403, "Forbidden"))
    server.fail_next("watchlist", refusal(403, "Forbidden"))
    handle = viewer.open()
    await read(handle)
    assert handle.outage is not None
    assert isinstance(handle.outage.error, Forbidden)


async def test_a_connection_that_breaks_once_is_no_outage(server: WidgetServer, viewer: Viewer) -> None:
    await server.put("a")
    handle = viewer.open()
    await read(handle)
    before = viewer.news
    server.cut_watches()
    await until(lambda: server.verbs()[-1] == "watch")
    await server.put("b")
    await until(lambda: len(names(handle)) == 2)
    assert handle.outage is None
    assert viewer.news == before + 1


async def test_an_outage_ends_when_the_watch_is_resumed_without_a_change(
    server: WidgetServer, viewer: Viewer, clock: VirtualClock
) -> None:
    handle = viewer.open()
    await read(handle)
    for _ in range(3):
        server.fail_next("watch", refusal(500, "InternalError"))
    server.cut_watches()
    await until(lambda: handle.outage is not None)
    assert handle.outage is not None
    since = handle.outage.since
    async with asyncio.timeout(5):
        while handle.outage is not None:
            assert handle.outage.since == since
            clock.advance_to_next_timer()
            await turns()


async def test_a_thousand_users_leave_neither_watch_nor_task_nor_figure(
    server: WidgetServer, manager: Manager, viewer: Viewer, clock: VirtualClock
) -> None:
    tasks = len(asyncio.all_tasks())
    for number in range(1000):
        handle = viewer.open(name=f"w{number % 10}")
        handle.close()
    await clock.advance(A_LITTLE_LATER)
    await until(lambda: len(asyncio.all_tasks()) == tasks)
    assert manager.informers == []
    assert clock.pending() == []
    await until(lambda: not server.watching)
    assert manager.metrics.get_sample_value("kardinal_informer_objects", {"kind": "Widget"}) is None
    assert manager.metrics.get_sample_value("kardinal_last_event_age_seconds", {"kind": "Widget"}) is None


async def test_watches_take_no_connection_from_requests(server: WidgetServer, viewer: Viewer, client: Client) -> None:
    handles = [viewer.open(name=f"w{number}") for number in range(300)]
    for handle in handles:
        await read(handle)
    await server.put("a")
    async with asyncio.timeout(5):
        assert (await client.list(WIDGET, "default")).items
    for handle in handles:
        handle.close()


async def test_a_manager_that_stops_ends_them(server: WidgetServer, client: Client, clock: VirtualClock) -> None:
    manager = Manager(client, clock=clock, name="test")
    await manager.start()
    handle = Viewer(manager).open()
    await read(handle)
    await manager.stop()
    assert manager.informers == []
    await until(lambda: not server.watching)
    handle.close()
    assert clock.pending() == []
