"""The watch stream: whatever the network does to it, events come out whole or an error says that they did not."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from aiohttp import web

from kardinal.kube import Client, ClusterAccess, Connection, ConnectionFailed, Expired, TooManyRequests, WatchEvent
from kardinal.kube.watch import LineSplitter
from kardinal.objects import ResourceType
from tests.kube.conftest import ScriptedServer, failure, reply, status_object, stream

WIDGET = ResourceType("example.com", "v1", "Widget", "widgets")


def line(kind: str, name: str, **more: object) -> bytes:
    return orjson.dumps({"type": kind, "object": {"kind": "Widget", "metadata": {"name": name}, **more}}) + b"\n"


async def collect(client: Client) -> list[WatchEvent]:
    async with client.watch(WIDGET, "default", resource_version="5") as events:
        return [event async for event in events]


def test_lines_come_out_whole_wherever_the_stream_is_split() -> None:
    data = b'{"a":1}\n{"b":2}\n\n{"c":3}\n'
    for first in range(len(data)):
        for second in range(first, len(data)):
            splitter = LineSplitter()
            found = [each for part in (data[:first], data[first:second], data[second:]) for each in splitter.feed(part)]
            assert found == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
            assert not splitter.unfinished


async def test_events_arrive_in_order_until_the_server_closes(server: ScriptedServer, client: Client) -> None:
    server.answers(stream(line("ADDED", "a")[:9], line("ADDED", "a")[9:] + line("MODIFIED", "b")))
    events = await collect(client)
    assert [(event.type, event.object["metadata"]["name"]) for event in events] == [("ADDED", "a"), ("MODIFIED", "b")]
    assert server.seen[0].query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
        "resourceVersion": "5",
    }


async def test_a_line_far_larger_than_any_buffer_is_one_event(server: ScriptedServer, client: Client) -> None:
    server.answers(stream(line("ADDED", "a", data="x" * 1_500_000)))
    events = await collect(client)
    assert len(events[0].object["data"]) == 1_500_000


async def test_an_error_inside_a_good_answer_is_raised(server: ScriptedServer, client: Client) -> None:
    error = orjson.dumps({"type": "ERROR", "object": status_object(410, "Expired", "too old")}) + b"\n"
    server.answers(stream(line("ADDED", "a"), error))
    with pytest.raises(Expired, match="too old"):
        await collect(client)


async def test_a_stream_cut_inside_a_line_is_an_error(server: ScriptedServer, client: Client) -> None:
    server.answers(stream(line("ADDED", "a"), b'{"type":"ADD'))
    with pytest.raises(ConnectionFailed, match="inside a line"):
        await collect(client)


async def test_a_broken_connection_is_an_error(server: ScriptedServer, client: Client) -> None:
    server.answers(stream(line("ADDED", "a"), cut=True))
    with pytest.raises(ConnectionFailed):
        await collect(client)


@pytest.mark.parametrize("garbage", [b"<html>\n", b"[1]\n", b'{"no":"type"}\n'])
async def test_a_line_that_is_no_event_is_an_error(server: ScriptedServer, client: Client, garbage: bytes) -> None:
    server.answers(stream(garbage))
    with pytest.raises(ConnectionFailed, match="not a watch event"):
        await collect(client)


async def test_a_refused_watch_says_how_long_to_wait_and_is_not_retried(server: ScriptedServer, client: Client) -> None:
    server.answers(failure(429, "TooManyRequests", "storage is (re)initializing", Retry_After="1"))
    with pytest.raises(TooManyRequests) as caught:
        await collect(client)
    assert caught.value.retry_after == 1.0
    assert len(server.seen) == 1


async def test_a_watch_renews_credentials_once(server: ScriptedServer) -> None:
    async def load() -> ClusterAccess:
        return ClusterAccess(server.url, authorization="Bearer new")

    server.answers(failure(401, "Unauthorized"), stream(line("ADDED", "a")))
    async with Client(Connection(ClusterAccess(server.url), load=load), user_agent="test") as client:
        assert len(await collect(client)) == 1
    assert server.seen[1].headers["Authorization"] == "Bearer new"


async def test_a_silent_stream_is_given_up_and_one_that_speaks_is_not(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kardinal.kube.transport.WATCH_SILENCE", 0.2)

    async def speak_then_fall_silent(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(6):
            await asyncio.sleep(0.05)
            await response.write(line("BOOKMARK", "a"))
        await asyncio.Event().wait()
        return response

    server.answers(speak_then_fall_silent)
    heard: list[WatchEvent] = []

    async def listen() -> None:
        async with client.watch(WIDGET, "default", resource_version="5") as events:
            async for event in events:
                heard.append(event)  # noqa: PERF401 - what came before the failure counts

    with pytest.raises(ConnectionFailed, match="silent for too long"):
        await listen()
    # Together they took longer than any single silence may.
    assert len(heard) == 6


async def test_initial_events_ask_for_a_state_not_older_than_the_revision(
    server: ScriptedServer, client: Client
) -> None:
    server.answers(reply(200, {}))
    async with client.watch(WIDGET, initial_events=True, timeout_seconds=420):
        pass
    assert server.seen[0].query == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "420",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
