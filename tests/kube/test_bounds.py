"""Answers of an API server have an end, whatever the server is."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web

from kardinal.bounded import JsonLimits
from kardinal.kube import Client, ClusterAccess, Connection, ConnectionFailed
from kardinal.kube.bounds import HUB
from kardinal.objects import CONFIG_MAP
from tests.kube.conftest import ScriptedServer, reply

TOO_LARGE = "the answer has more than 1,000 bytes"


@pytest.fixture
async def bounded(server: ScriptedServer) -> AsyncIterator[Client]:
    """Yield a client that takes answers of 1,000 bytes."""
    bounds = replace(HUB, answer=JsonLimits(size=1_000))
    async with Client(Connection(ClusterAccess(server.url)), user_agent="test", bounds=bounds) as client:
        yield client


async def test_a_page_that_is_too_large_is_refused(server: ScriptedServer, bounded: Client) -> None:
    server.answers(reply(200, {"items": [], "padding": "x" * 2_000}))
    with pytest.raises(ConnectionFailed, match=TOO_LARGE):
        await bounded.list(CONFIG_MAP, "default")


async def test_a_page_without_a_length_is_cut_off(server: ScriptedServer, bounded: Client) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(100):
            await response.write(b" " * 100)
            await asyncio.sleep(0)
        return response

    server.answers(answer)
    with pytest.raises(ConnectionFailed, match=TOO_LARGE):
        await bounded.list(CONFIG_MAP, "default")


async def test_compressed_answer_is_refused(server: ScriptedServer, bounded: Client) -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=gzip.compress(b'{"items": []}'), headers={"Content-Encoding": "gzip"})

    server.answers(answer)
    with pytest.raises(ConnectionFailed, match="compressed"):
        await bounded.list(CONFIG_MAP, "default")
