"""Attacks by answers before the answer: a server that sends provisional ones, or many at once, holds up one request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from kardinal.clock import SystemClock
from kardinal.kube import Client, ConnectionFailed, load_connection
from kardinal.objects import DEPLOYMENT
from kardinal.scm import HostUnavailable
from kardinal.scm.http import HostSessions
from kardinal_agent.endpoints import EndpointClient, StepHosts
from kardinal_agent.endpoints.errors import EndpointUnavailable
from tests.attacks.test_host_answers import of_namespace
from tests.scm.test_host_client import FaultyHost, shown

MIB = 1 << 20
MOST = 96 * MIB
"""Bytes that are sent on one connection where they are taken; buffers of sockets hold some megabytes."""
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
FINAL = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass
class Flooding:
    """A server that repeats one answer. `sent`: the most bytes on one connection."""

    answer: bytes
    head: bytes = b""
    port: int = 0
    sent: int = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = 0
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self.head)
            while sent < MOST:
                writer.write(self.answer * 1000)
                sent += len(self.answer) * 1000
                self.sent = max(self.sent, sent)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def flooding(answer: bytes, head: bytes = b"") -> AsyncIterator[Flooding]:
    server = Flooding(answer, head)
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    async with listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server


async def ask_endpoint(server: Flooding, directory: Path) -> None:
    host = f"127.0.0.1:{server.port}"
    with pytest.raises(EndpointUnavailable):
        await EndpointClient(StepHosts((host,))).request("POST", f"http://{host}/", headers={}, body=b"{}")


async def ask_host(server: Flooding, directory: Path) -> None:
    async with HostSessions(clock=SystemClock()) as sessions:
        host = FaultyHost(shown, url=f"http://127.0.0.1:{server.port}")
        with pytest.raises(HostUnavailable):
            await of_namespace(host, sessions, "team").heads()


async def ask_cluster(server: Flooding, directory: Path) -> None:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    kubeconfig = directory / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))

    async def at_once(seconds: float) -> None:
        """Wait for nothing before the next attempt."""

    async with Client(await load_connection(kubeconfig), user_agent="test", sleep=at_once) as client:
        with pytest.raises(ConnectionFailed):
            await client.create(DEPLOYMENT, {"kind": "Deployment", "metadata": {"name": "x", "namespace": "x"}})


Asking = Callable[[Flooding, Path], Awaitable[None]]


@pytest.mark.parametrize("ask", [ask_endpoint, ask_host, ask_cluster])
async def test_provisional_answers_without_end_are_given_up(ask: Asking, tmp_path: Path) -> None:
    async with flooding(EARLY) as server:
        await ask(server, tmp_path)
    assert 0 < server.sent < 32 * MIB


async def test_an_answer_in_pieces_of_one_byte_is_given_up(tmp_path: Path) -> None:
    async with flooding(b"1\r\n \r\n", CHUNKED) as server:
        await ask_host(server, tmp_path)
    assert 0 < server.sent < 16 * MIB


async def test_answers_behind_the_answer_are_not_kept() -> None:
    async with flooding(FINAL) as server:
        host = f"127.0.0.1:{server.port}"
        with suppress(EndpointUnavailable):  # the first of them is an answer
            await EndpointClient(StepHosts((host,))).request("POST", f"http://{host}/", headers={}, body=b"{}")
    assert 0 < server.sent < 32 * MIB
