"""Whatever is thrown at the plane, it answers, says nothing it regrets, and is there for the next one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import aiohttp
import orjson
import pytest
import yaml
from yarl import URL

from kardinal_local.plane import LocalPlane
from kardinal_local.plane.plane import KEEPALIVE_SECONDS
from tests.local.plane.hostile.requests import Hostile, hostile_request
from tests.local.plane.wire import CONFIG_MAPS, Http, config_map, session_for, widget_definition

SEED = 20261121
FEW, MANY = 1_500, 100_000
AT_ONCE = 8
MEMORY_LIMIT = 200 * 1024 * 1024
PLANE_LOGGERS = ("asyncio", "kardinal_local")
REAL_FAILURES = ("strconv.ParseUint", "resourceVersion should not be set", "etcdserver: request is too large")
"""What a real API server blames itself for as well; see the recordings of the contract suite."""


async def ask(session: aiohttp.ClientSession, request: Hostile) -> None:
    """Send one request; fails unless the answer is one that a real server could give."""
    url = URL(str(session._base_url).rstrip("/") + request.path, encoded=True)
    async with session.request(request.method, url, data=request.body, headers=request.headers) as answer:
        body = await answer.read()
    if answer.status < 300 or request.method == "HEAD":
        return  # what is wrong with a HEAD is told by the GET of the same kind
    if answer.content_type == "text/plain":
        assert answer.status in {400, 404}, (request, answer.status, body)
        return
    status = yaml.safe_load(body) if answer.content_type == "application/yaml" else orjson.loads(body)
    assert (status["kind"], status["code"]) == ("Status", answer.status), (request, body)
    known = answer.status < 500 or status["message"] == "content is not a list"
    assert known or any(words in status["message"] for words in REAL_FAILURES), (request, body)


@pytest.mark.timeout(3600)
async def test_no_request_breaks_the_plane(
    plane: LocalPlane, http: Http, soak: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await http.define(widget_definition())
    random = Random(SEED)
    requests = (hostile_request(random) for _ in range(MANY if soak else FEW))

    async def send() -> None:
        for request in requests:
            await ask(http.session, request)

    before = resident()
    with caplog.at_level(logging.ERROR):
        await asyncio.gather(*(send() for _ in range(AT_ONCE)))
    assert [record.getMessage() for record in caplog.records if record.name.startswith(PLANE_LOGGERS)] == []
    assert resident() - before < MEMORY_LIMIT
    assert (await http.get("/readyz")).status == 200


async def test_a_body_without_end_is_refused_while_it_comes(plane: LocalPlane, http: Http) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield b" " * (1024 * 1024)

    before = resident()
    try:
        async with http.session.post(CONFIG_MAPS, data=endless()) as answer:
            assert answer.status == 413
    except aiohttp.ClientConnectionError:
        # It was refused, and the connection closed, before the client had said all.
        pass
    assert sent < 100
    assert resident() - before < MEMORY_LIMIT
    assert (await http.post(CONFIG_MAPS, config_map("after"))).status == 201


async def test_a_header_that_comes_byte_by_byte_is_cut_off(
    plane: LocalPlane, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kardinal_local.plane.wire.connections.HEADER_SECONDS", 0.2)
    for beginning in (
        b"GET /api HTTP/1.1\r\nX: ",
        b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api HTTP/1.1\r\nX: ",
    ):
        answer = await dribble(plane, beginning)
        # What was asked for in whole is answered, whatever comes behind it.
        assert answer.count(b"HTTP/1.1 200 OK") == beginning.count(b"readyz")
    assert (await http.get("/readyz")).status == 200


async def test_an_idle_connection_outlasts_the_deadline_of_a_header(
    plane: LocalPlane, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kardinal_local.plane.wire.connections.HEADER_SECONDS", 0.2)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", plane.port, ssl=context)
    for _ in range(2):
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        # Its deadline would have come before this one's.
        await dribble(plane, b"GET ")
    writer.transport.abort()
    # Go keeps idle connections for 90 s, and must be the one to let go.
    assert KEEPALIVE_SECONDS > 90


async def test_a_body_that_comes_byte_by_byte_is_cut_off(
    plane: LocalPlane, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kardinal_local.plane.wire.bodies.BODY_SECONDS", 0.2)
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
    answer = await dribble(plane, f"{head}Authorization: {http.session.headers['Authorization']}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert (await http.get("/readyz")).status == 200


@pytest.mark.parametrize(
    "text",
    [
        b"\x16\x03\x01 nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["tls", "version", "path", "header", "length", "chunk"],
)
async def test_what_is_no_http_is_a_bad_request(plane: LocalPlane, http: Http, text: bytes) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", plane.port, ssl=context)
    writer.write(text)
    answer = await reader.read(12)
    assert (answer[:7], answer[9:10]) == (b"HTTP/1.", b"4")
    writer.transport.abort()
    assert (await http.get(CONFIG_MAPS)).status == 200


async def test_a_name_that_is_not_of_this_machine_is_refused(plane: LocalPlane, http: Http) -> None:
    for host in ("evil.example.com", "127.0.0.1.example.com", "localhost.example.com:443", ""):
        refused = await http("GET", CONFIG_MAPS, headers={"Host": host})
        assert refused.status in {400, 403}, host


async def test_nobody_without_a_token_gets_in(plane: LocalPlane) -> None:
    async with session_for(plane.kubeconfig, token="") as session:
        for path in ("/api", "/openapi/v3", CONFIG_MAPS, "/nothing"):
            assert (await Http(session).get(path)).status == 401


async def dribble(plane: LocalPlane, beginning: bytes) -> bytes:
    """Send a beginning and then a byte at a time, until the plane has had enough; what it answered."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", plane.port, ssl=context)
    writer.write(beginning)
    heard = asyncio.ensure_future(everything(reader))
    while not heard.done():
        with contextlib.suppress(ConnectionError):
            writer.write(b"x")
            await writer.drain()
        await asyncio.wait([heard], timeout=0.01)
    writer.transport.abort()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return heard.result()


async def everything(reader: asyncio.StreamReader) -> bytes:
    """What comes before the end of the connection, however it ends."""
    heard = b""
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(4096):
            heard += piece
    return heard


def resident() -> int:
    """Return the memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096
