"""Attacks by `health.cluster`: a kubeconfig that has the agent ask hosts which its author cannot reach."""

from __future__ import annotations

import asyncio
import base64
import gzip
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from kardinal.api import BUNDLE, PROMOTION_STEP
from kardinal.objects import EVENT, SECRET, JsonObject
from tests.agent.promotion_steps import create, promotion_step, start_agent, state
from tests.support.names import DEV, TEAM
from tests.support.repository import GitRepository
from tests.support.world import World

INTERNAL = "internal-project-neptune"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def no_part_fails(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Fail where a part of a program ends by an error, after which the program ends."""
    yield
    assert "a part of the program failed" not in capsys.readouterr().out


@asynccontextmanager
async def internal_host(certificate: Path, status: int, body: JsonObject | str) -> AsyncIterator[str]:
    """Yield the URL of a host that says `body` to every request."""

    async def answer(_: web.Request) -> web.Response:
        if isinstance(body, str):
            return web.Response(status=status, text=body)
        return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def put_cluster(world: World, server: str, certificate: Path) -> None:
    authority = base64.b64encode(certificate.read_bytes()).decode()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    metadata = {"name": "far", "namespace": TEAM, "labels": {"kardinal.io/credentials": "kubeconfig"}}
    data = {"kubeconfig": orjson.dumps(config).decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}
    await world.client.apply(SECRET, secret, field_manager="test")


async def seen_by_the_team(world: World) -> str:
    found = [obj for kind in (BUNDLE, PROMOTION_STEP, EVENT) for obj in await world.objects(kind, TEAM)]
    return orjson.dumps(found).decode()


STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": INTERNAL, "reason": INTERNAL}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, INTERNAL), "is unreachable since"),
        ((500, INTERNAL), "is unreachable since"),
        ((404, INTERNAL), "cluster far does not serve deployments.apps"),
        ((403, {**STATUS, "reason": "Forbidden", "code": 403}), "its kubeconfig may not list and watch"),
        ((422, {**STATUS, "code": 422}), "is unreachable since"),
        ((302, INTERNAL), "is unreachable since"),
    ],
    ids=["page", "error", "missing", "forbidden", "invalid", "redirect"],
)
async def test_answers_of_a_host_are_not_told(
    world: World, repository: GitRepository, certificate: Path, answer: tuple[int, JsonObject | str], words: str
) -> None:
    async with internal_host(certificate, *answer) as server:
        agent = await start_agent(world)
        await put_cluster(world, server, certificate)
        await create(world, promotion_step(repository, health={"type": "resource", "cluster": "far"}))

        async def told() -> bool:
            return words in ((await state(world)).get("message") or "")

        await world.until(told)
        assert INTERNAL not in await seen_by_the_team(world)
        await world.stop(agent)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def hostile_host(certificate: Path, handler: Handler) -> AsyncIterator[str]:
    """Yield the URL of a host that answers as `handler` does."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


class Endless:
    """Answers without an end, as far as they are read: `piece` again and again, 128 MiB at most."""

    def __init__(self, begin: bytes, piece: bytes) -> None:
        self._begin = begin
        self._piece = piece
        self.sent = 0
        """The most that was sent in one answer."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        sent = 0
        with suppress(ConnectionError):
            await response.write(self._begin)
            while sent < 128 * MIB:
                await response.write(self._piece)
                sent += len(self._piece)
                await asyncio.sleep(0)  # a connection that is closed is seen in the next round of the loop
                self.sent = max(self.sent, sent)
        return response


async def told_of(world: World, repository: GitRepository, certificate: Path, handler: Handler, words: str) -> None:
    """Prove an environment in the cluster behind `handler`, until the message of the promotion has these words."""
    async with hostile_host(certificate, handler) as server:
        agent = await start_agent(world)
        await put_cluster(world, server, certificate)
        await create(world, promotion_step(repository, health={"type": "resource", "cluster": "far"}))

        async def told() -> bool:
            return words in ((await state(world)).get("message") or "")

        await world.until(told)
        await world.stop(agent)


async def test_a_compressed_answer_is_not_unpacked(world: World, repository: GitRepository, certificate: Path) -> None:
    small = gzip.compress(b'{"items": [' + b" " * (64 * MIB) + b"]}", compresslevel=1)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=small, headers={"Content-Encoding": "gzip"}, content_type="application/json")

    tracemalloc.start()
    try:
        await told_of(world, repository, certificate, answer, "is unreachable since")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 48 * MIB


@pytest.mark.parametrize("begin", [b'{"items": [', b'{"type": "ADDED", "object": {"x": "'], ids=["answer", "line"])
async def test_an_answer_or_a_line_without_an_end_is_cut_off(
    world: World, repository: GitRepository, certificate: Path, begin: bytes
) -> None:
    endless = Endless(begin, b" " * MIB)
    await told_of(world, repository, certificate, endless.answer, "is unreachable since")
    assert endless.sent < 24 * MIB


async def test_objects_without_an_end_are_given_up(world: World, repository: GitRepository, certificate: Path) -> None:
    """Count what is kept of a watch that goes on to tell of new objects."""
    line = orjson.dumps({"type": "ADDED", "object": {**OBJECT, "data": "x" * (MIB // 2)}})
    endless = Endless(b"", line + b"\n")
    await told_of(world, repository, certificate, endless.answer, "is unreachable since")
    assert MIB < endless.sent < 96 * MIB


OBJECT = {"kind": "Deployment", "metadata": {"name": "app", "namespace": DEV, "uid": "u", "resourceVersion": "1"}}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"type": "ADDED", "object": {}}),
        (200, {"type": "ADDED", "object": {"metadata": []}}),
        (200, {"type": "ADDED", "object": {"metadata": {"name": ["a"], "resourceVersion": 1}}}),
        (200, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1", "annotations": 5}}}),
        (200, {"type": ["ADDED"], "object": 5}),
        (200, {"type": "ERROR", "object": []}),
        (200, {"type": "ERROR", "object": {"code": "x", "reason": [], "details": {"retryAfterSeconds": "x"}}}),
        (500, {"kind": "Status", "code": "x", "reason": {}, "details": "x"}),
        (500, {"kind": "Status", "details": {"retryAfterSeconds": "x", "causes": [5]}}),
        (410, {"kind": "Status", "reason": "Expired", "details": {"causes": 5}}),
        (400, {"items": [5], "metadata": {"continue": 5}}),
        (200, {"x": [[]] * 200_000}),
    ],
    ids=[f"case-{number}" for number in range(12)],
)
async def test_nothing_that_a_cluster_answers_stops_the_agent(
    world: World, repository: GitRepository, certificate: Path, status: int, body: JsonObject
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=orjson.dumps(body) + b"\n", content_type="application/json")

    await told_of(world, repository, certificate, answer, "is unreachable since")


@pytest.mark.parametrize(
    "answer", [{"items": [5]}, {"items": {}}, {"items": [], "metadata": []}, {"items": [{"metadata": {"name": 5}}]}]
)
async def test_a_list_of_something_else_stops_nothing(
    world: World, repository: GitRepository, certificate: Path, answer: JsonObject
) -> None:
    async def answered(request: web.Request) -> web.Response:
        # A server that does not stream lists is asked for pages.
        status, body = (400, {}) if "watch" in request.query else (200, answer)
        return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")

    await told_of(world, repository, certificate, answered, "is unreachable since")
