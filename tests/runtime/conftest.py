"""A small server, a client on it, and ways to wait for what the runtime does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from kardinal.kube import Client, ClusterAccess, Connection
from tests.runtime.apiserver import WidgetServer, serving

Until = Callable[[Callable[[], object]], object]


@pytest.fixture
async def server() -> AsyncIterator[WidgetServer]:
    async with serving() as started:
        yield started


@pytest.fixture
async def client(server: WidgetServer) -> AsyncIterator[Client]:
    async with Client(Connection(ClusterAccess(server.url)), user_agent="test") as opened:
        yield opened


async def until(condition: Callable[[], object]) -> None:
    """Let everything run until `condition` holds."""
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


async def turns(count: int = 20) -> None:
    """Let what is ready run, without any time passing."""
    for _ in range(count):
        await asyncio.sleep(0)
