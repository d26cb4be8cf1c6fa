"""Attacks by connections: sockets without a request, heads and bodies that do not end, answers that are not read."""

from __future__ import annotations

import asyncio
import gzip
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
import pytest

from kardinal.objects import SECRET
from kardinal.promotion.kinds import PIPELINE
from kardinal.runtime import connections
from kardinal_controller.http import bodies, server
from kardinal_controller.program import ControlPlane
from tests.http.test_hosts import Host, git_webhook, of_pull_request
from tests.resilience.processes import Local, Shell, make_namespace, shell
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.programs import start_controller
from tests.support.webhook import TOKEN, Ci, body_of, webhook_secret
from tests.support.world import World

__all__ = ["shell"]

REPOSITORY = "https://git.example.com/acme/gitops.git"
CONNECTIONS = 32
"""Connections of a listener that is made smaller than those of an installation."""
MANY = 48
SHORT = 0.2
"""Seconds in place of those that a client is given."""

pytestmark = pytest.mark.timeout(120)

Socket = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def controller(world: World) -> ControlPlane:
    way = pipeline(REPOSITORY, provider="gitea")
    way["spec"]["git"]["webhookSecretRef"] = {"name": "gitea-webhook"}
    await world.apply(way, git_webhook())
    await world.client.create(SECRET, webhook_secret())
    return await start_controller(world, standalone=False)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def ci(world: World, controller: ControlPlane, session: aiohttp.ClientSession) -> Ci:
    return Ci(controller.api_url, session, world.clock)


@pytest.fixture
def host(controller: ControlPlane, session: aiohttp.ClientSession) -> Host:
    return Host(controller.api_url, session)


@asynccontextmanager
async def sockets(url: str, number: int, sent: bytes = b"") -> AsyncIterator[list[Socket]]:
    """Open connections one after the other, each sending the same and nothing more."""
    parts = urlsplit(url)
    opened = []
    try:
        for _ in range(number):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            opened.append((reader, writer))
            writer.write(sent)
        yield opened
    finally:
        for _, writer in opened:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in opened), return_exceptions=True)


async def closed(*opened: Socket) -> None:
    """Return when the server has closed connections, which it does after an answer or without one."""
    for reader, _ in opened:
        try:
            await reader.read()
        except ConnectionError:
            continue


def head(path: str, length: int, *, bearer: str = "wrong") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: kardinal", f"Authorization: Bearer {bearer}"]
    lines += ["X-Kardinal-Signature-256: sha256=00", f"Content-Length: {length}", "", ""]
    return "\r\n".join(lines).encode()


HEADS = {
    "nothing": b"",
    "half a head": b"POST /api/v1/bundles HTTP/1.1\r\nHost: kardinal\r\n",
    "no body": head("/api/v1/bundles", 100),
    "an idle connection": b"GET / HTTP/1.1\r\nHost: kardinal\r\n\r\n",
}


async def test_connections_that_keep_the_webhook_waiting_give_way(
    world: World, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open more than there may be, of each kind in turn; those that have waited longest are closed."""
    monkeypatch.setattr(server, "CONNECTIONS", CONNECTIONS)
    await world.apply(pipeline(REPOSITORY, provider="gitea"))
    await world.client.create(SECRET, webhook_secret())
    controller = await start_controller(world, standalone=False)
    ci = Ci(controller.api_url, session, world.clock)
    async with AsyncExitStack() as stack:
        opened: list[Socket] = []
        for sent in list(HEADS.values()) * (MANY // len(HEADS)):
            opened += await stack.enter_async_context(sockets(controller.api_url, 1, sent))
        await closed(*opened[: MANY - CONNECTIONS])
        for number in range(5):
            assert (await ci.post(body_of(tag=f"1.2.{number}"))).status == 201


async def test_connections_that_keep_probes_or_metrics_waiting_give_way(
    controller: ControlPlane, session: aiohttp.ClientSession
) -> None:
    for url in (f"{controller.probe_url}/healthz", f"{controller.metrics_url}/metrics"):
        async with sockets(url, 120, b"GET /heal") as opened:
            await closed(*opened[:50])
            async with session.get(url) as answer:
                assert answer.status == 200


async def test_heads_and_the_time_between_two_requests_are_bounded(controller: ControlPlane) -> None:
    """Say nothing, begin the first head or the second, and say nothing after a request."""
    begun = b"POST /api/v1/bundles HTTP/1.1\r\nX: "
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "HEAD_SECONDS", SHORT)
        for first, second in ((b"", b""), (b"", begun), (HEADS["an idle connection"], begun)):
            async with sockets(controller.api_url, 1, first) as opened:
                [(reader, writer)] = opened
                if first:
                    await reader.readuntil(b"}")
                writer.write(second)
                await closed(*opened)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "IDLE_SECONDS", SHORT)
        async with sockets(controller.api_url, 1, HEADS["an idle connection"]) as opened:
            await closed(*opened)


async def test_a_head_without_an_end_is_not_taken_whole(controller: ControlPlane) -> None:
    line = b"POST /api/v1/bundles HTTP/1.1\r\n"
    many = line + b"".join(b"X-%d: %s\r\n" % (number, b"x" * 4000) for number in range(20))
    async with sockets(controller.api_url, 1, many) as opened:
        await closed(*opened)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have one loopback address")
async def test_one_address_has_its_share_where_the_operator_says_so(world: World) -> None:
    controller = await start_controller(world, standalone=False, api_connections_per_address=4)
    port = urlsplit(controller.api_url).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
    async with sockets(controller.api_url, 10) as opened:
        await closed(*opened[:6])
        writer.write(HEADS["an idle connection"])
        assert (await reader.readline()).startswith(b"HTTP/1.1 404")
        opened[-1][1].write(HEADS["an idle connection"])
        assert (await opened[-1][0].readline()).startswith(b"HTTP/1.1 404")
    writer.close()
    await writer.wait_closed()


async def test_large_bodies_that_do_not_end_keep_no_delivery_waiting(controller: ControlPlane, host: Host) -> None:
    """Send nothing of the bodies, and then a part of them."""
    delivery = orjson.dumps({"padding": "x" * 200_000, **orjson.loads(of_pull_request(7))})
    for share in (0, 300_000):
        announced = head("/webhooks/gitea/team/app", 1_000_000) + b"x" * share
        async with sockets(controller.api_url, 40, announced):
            for _ in range(5):
                assert (await host.deliver(delivery))[0] == 202


async def test_large_bodies_that_stall_are_told_to_try_again(controller: ControlPlane) -> None:
    announced = head("/webhooks/gitea/team/app", 1_000_000) + b"x" * 900_000
    assert bodies.LARGE_AT_ONCE < 10 * 900_000
    async with sockets(controller.api_url, 10, announced) as opened:
        reader, _ = opened[0]
        assert (await reader.readline()).startswith(b"HTTP/1.1 503")


async def test_bodies_that_stall_have_a_bound_in_all_namespaces_together(
    controller: ControlPlane, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "LARGE_IN_ALL", 2 * bodies.BODY_LIMIT)
    monkeypatch.setattr(bodies, "BODY_WITHIN", SHORT)
    announced = head(f"/api/v1/namespaces/{TEAM}/bundles", 1_000_000, bearer=TOKEN) + b"x" * 900_000
    delivery = orjson.dumps({"padding": "x" * 200_000, **orjson.loads(of_pull_request(7))})
    async with sockets(controller.api_url, 3, announced) as opened:
        answers = [asyncio.create_task(reader.readline()) for reader, _ in opened]
        [first], _ = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        assert first.result().startswith(b"HTTP/1.1 503")
        assert (await host.deliver(delivery))[0] == 202
    await asyncio.wait(answers)


async def test_the_largest_bundles_wait_for_each_other(ci: Ci, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LARGE_AT_ONCE", 2 * len(orjson.dumps(_largest(0))))
    path = f"/api/v1/namespaces/{TEAM}/bundles"
    deliveries = [ci.signed(_largest(number), path=path) for number in range(8)]
    answers = await asyncio.gather(*(ci.send(delivery) for delivery in deliveries))
    assert [answer.status for answer in answers] == [201] * 8


def _largest(number: int) -> dict[str, Any]:
    """Return the body of a Bundle whose fields are full, or nearly."""
    images = [
        {"name": "n" * 253, "reference": f"ghcr.io/{'i' * 100}-{index}:1.2.{number}", "digest": f"sha256:{index:064x}"}
        for index in range(64)
    ]
    charts = [
        {"repository": f"oci://ghcr.io/{'c' * 2000}/{index}", "name": "n" * 253, "version": f"1.2.{number}"}
        for index in range(64)
    ]
    labels = {f"{'p' * 240}/{'k' * 55}-{index}": "v" * 63 for index in range(32)}
    return body_of(artifacts={"images": images, "charts": charts}, labels=labels)


async def test_bytes_that_are_no_request_end_the_connection_and_are_not_logged(
    controller: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    """Send them after a body, and in a head."""
    for sent in (head("/api/v1/bundles", 2) + b"{}" + b"\xff" * 500_000, b"GET / HTTP/1.1\r\n" + b"\xff" * 20_000):
        async with sockets(controller.api_url, 1, sent) as opened:
            [(reader, _)] = opened
            answer = b""
            with suppress(ConnectionError):
                answer = await reader.read()
        assert len(answer) <= 128 * 1024
    assert "xff" not in caplog.text


async def test_a_compressed_body_is_not_unpacked(controller: ControlPlane, ci: Ci) -> None:
    packed = gzip.compress(b" " * 5 * bodies.BODY_LIMIT)
    assert len(packed) < 64 * 1024
    delivery = ci.signed(packed, path=f"/api/v1/namespaces/{TEAM}/bundles")
    delivery.headers["Content-Encoding"] = "gzip"
    answer = await ci.send(delivery)
    assert answer.status == 415


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process, and its memory")
@pytest.mark.local_only("the process of a plane")
@pytest.mark.timeout(180)
async def test_a_thousand_sockets_leave_descriptors_and_memory_to_the_rest(shell: Shell, tmp_path: Path) -> None:
    local = Local(shell, tmp_path / "local")
    await local.up()
    # As where no more may be had.
    resource.prlimit(local.process.pid, resource.RLIMIT_NOFILE, (1024, 1024))
    places = orjson.loads((local.directory / "endpoints.json").read_bytes())
    before = memory_of(local.process.pid)
    large = head("/webhooks/gitea/team/app", 1_000_000) + b"x" * 300_000
    async with (
        sockets(places["api"], 1010),
        sockets(places["api"], 100, b"GET / HTTP/1.1\r\nX: " + b"x" * 8000),
        sockets(places["api"], 100, large),
        sockets(places["probes"], 100),
        sockets(places["metrics"], 100),
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"{places['probes']}/healthz") as answer:
            assert answer.status == 200
        async with session.post(f"{places['api']}/api/v1/bundles", data=b"{}") as answer:
            assert answer.status == 401
        async with local.client() as client:
            await make_namespace(client)
            await client.create(PIPELINE, pipeline(REPOSITORY, provider="git"))
        assert memory_of(local.process.pid) - before < 64 * 1024 * 1024
    await local.kill()


def memory_of(process: int) -> int:
    """Return the most bytes that a process has had in memory."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
