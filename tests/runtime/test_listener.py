"""A listener closes the connections of clients that ask ahead, or do not read."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from kardinal.runtime import connections
from kardinal.runtime.listener import Listener

REQUEST = b"GET / HTTP/1.1\r\nHost: kardinal\r\n\r\n"


class Served:
    """An application whose answer is made when a test says so."""

    def __init__(self) -> None:
        self.listener = Listener(most=2)
        self.asked = asyncio.Event()
        self.made = asyncio.Event()
        self.answer = b"done"
        self.url = ""

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/", self._reply)
        self.url = await self.listener.start(app, "127.0.0.1:0")

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", urlsplit(self.url).port))
        return await asyncio.open_connection(sock=client, limit=1024)

    async def _reply(self, _: web.Request) -> web.Response:
        self.asked.set()
        await self.made.wait()
        return web.Response(body=self.answer)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    await served.start()
    yield served
    served.made.set()
    await served.listener.stop()


async def ended(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Return what came until the server closed the connection."""
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_a_request_before_the_answer_to_the_one_ahead_is_not_taken(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(REQUEST)
    await served.asked.wait()
    writer.write(REQUEST)
    assert await ended(reader, writer) == b""


async def test_an_answer_that_is_not_read_has_its_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.2)
    served.answer = b"x" * 50_000_000
    served.made.set()
    reader, writer = await served.connect()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(REQUEST)
    # Another client is served meanwhile, and as soon as this one is closed there is nothing left to stop.
    await served.asked.wait()
    await served.listener.stop()
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    assert len(await ended(reader, writer)) < len(served.answer)


async def test_a_connection_at_work_does_not_give_way(served: Served) -> None:
    first = await served.connect()
    first[1].write(REQUEST)
    await served.asked.wait()
    served.asked.clear()
    second = await served.connect()
    second[1].write(REQUEST)
    await served.asked.wait()
    assert await ended(*await served.connect()) == b""
    served.made.set()
    for reader, writer in (first, second):
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        await writer.wait_closed()


@pytest.mark.skipif(sys.platform != "linux", reason="macOS has a further limit of the kernel")
def test_a_program_has_all_descriptors_that_it_may_and_a_listener_leaves_most_of_them() -> None:
    script = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 400))
from kardinal.runtime.descriptors import share
from kardinal.runtime.process import run
async def main():
    print(*resource.getrlimit(resource.RLIMIT_NOFILE), share(128))
run(main())
"""
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert ran.stdout.split() == ["400", "400", "48"]
