"""Attacks by `health.cluster`: a kubeconfig that has the agent ask hosts which its author cannot reach."""

from __future__ import annotations

import asyncio
import base64
import gzip
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
from aiohttp import web

from kardinal.kube import Room
from kardinal.objects import EVENT, SECRET, JsonObject
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_agent.health import clusters
from tests.agent.promotion_steps import create, promotion_step, start_agent, state
from tests.support.names import DEV, TEAM
from tests.support.repository import GitRepository
from tests.support.world import World

INTERNAL = "internal-project-neptune"
MIB = 1 << 20


@pytest.fixture(autouse=True)
def no_part_fails(logged_bugs: list[str]) -> Iterator[None]:
    """Fail where a part of a program ends by an error, after which the program ends."""
    events: list[str] = []

    def note(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        events.append(str(event["event"]))
        return event

    structlog.configure(processors=[note, *structlog.get_config()["processors"]])
    yield
    assert [event for event in events if event.startswith("a part of the program failed")] == []


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answer = tuple[int, JsonObject | str]


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


def answer_of(status: int, body: JsonObject | str) -> web.Response:
    if isinstance(body, str):
        return web.Response(status=status, text=body)
    return web.Response(status=status, body=orjson.dumps(body) + b"\n", content_type="application/json")


async def put_cluster(world: World, server: str, certificate: Path, *, name: str = "far") -> None:
    authority = base64.b64encode(certificate.read_bytes()).decode()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    metadata = {"name": name, "namespace": TEAM, "labels": {"kardinal.io/credentials": "kubeconfig"}}
    data = {"kubeconfig": orjson.dumps(config).decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data}
    await world.client.apply(SECRET, secret, field_manager="test")


async def seen_by_the_team(world: World) -> str:
    found = [obj for kind in (BUNDLE, PROMOTION_STEP, EVENT) for obj in await world.objects(kind, TEAM)]
    return orjson.dumps(found).decode()


async def told_of_each(
    world: World, repository: GitRepository, certificate: Path, handler: Handler, words: dict[str, str]
) -> None:
    """Prove an environment in a cluster below each path of the host, until each message has the words for its path."""
    async with hostile_host(certificate, handler) as server:
        agent = await start_agent(world)
        steps = []
        for path in words:
            await put_cluster(world, f"{server}/{path}", certificate, name=path)
            health = {"type": "resource", "cluster": path}
            steps.append(promotion_step(repository, f"{DEV}-{path}", steps=[{"uses": "health-check"}], health=health))
        await create(world, *steps)

        async def told() -> bool:
            messages = {path: (await state(world, f"{DEV}-{path}")).get("message") or "" for path in words}
            return all(words[path] in message for path, message in messages.items())

        await world.until(told)
        await world.stop(agent)


STATUS: JsonObject = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "message": INTERNAL,
    "reason": INTERNAL,
}


TOLD: dict[str, tuple[Answer, str]] = {
    "page": ((200, INTERNAL), "is unreachable since"),
    "error": ((500, INTERNAL), "is unreachable since"),
    "missing": ((404, INTERNAL), "cluster missing does not serve deployments.apps"),
    "forbidden": ((403, {**STATUS, "reason": "Forbidden", "code": 403}), "its kubeconfig may not list and watch"),
    "invalid": ((422, {**STATUS, "code": 422}), "is unreachable since"),
    "redirect": ((302, INTERNAL), "is unreachable since"),
}


async def test_answers_of_a_host_are_not_told(world: World, repository: GitRepository, certificate: Path) -> None:
    async def answer(request: web.Request) -> web.Response:
        return answer_of(*TOLD[request.path.split("/")[1]][0])

    words = {path: expected for path, (_, expected) in TOLD.items()}
    await told_of_each(world, repository, certificate, answer, words)
    assert INTERNAL not in await seen_by_the_team(world)


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
    await told_of_each(world, repository, certificate, handler, {"far": words})


async def test_a_compressed_answer_is_not_unpacked(world: World, repository: GitRepository, certificate: Path) -> None:
    small = gzip.compress(b'{"items": [' + b" " * (32 * MIB) + b"]}", compresslevel=1)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=small, headers={"Content-Encoding": "gzip"}, content_type="application/json")

    tracemalloc.start()
    try:
        await told_of(world, repository, certificate, answer, "is unreachable since")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 * MIB


@pytest.mark.parametrize("begin", [b'{"items": [', b'{"type": "ADDED", "object": {"x": "'], ids=["answer", "line"])
async def test_an_answer_or_a_line_without_an_end_is_cut_off(
    world: World, repository: GitRepository, certificate: Path, begin: bytes
) -> None:
    endless = Endless(begin, b" " * MIB)
    await told_of(world, repository, certificate, endless.answer, "is unreachable since")
    assert endless.sent < 32 * MIB


async def test_objects_without_an_end_are_given_up(
    world: World, repository: GitRepository, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Count what is kept of a watch that goes on to tell of new objects, with a quarter of the memory for them."""
    monkeypatch.setattr(clusters, "Room", lambda: Room(16 * MIB))
    line = orjson.dumps({"type": "ADDED", "object": {**OBJECT, "data": "x" * (MIB // 2)}})
    endless = Endless(b"", line + b"\n")
    await told_of(world, repository, certificate, endless.answer, "is unreachable since")
    assert MIB < endless.sent < 32 * MIB


OBJECT = {"kind": "Deployment", "metadata": {"name": "app", "namespace": DEV, "uid": "u", "resourceVersion": "1"}}


ANSWERS: list[tuple[int, JsonObject]] = [
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
]
LISTS: list[JsonObject] = [
    {"items": [5]},
    {"items": {}},
    {"items": [], "metadata": []},
    {"items": [{"metadata": {"name": 5}}]},
]


async def test_nothing_that_a_cluster_answers_stops_the_agent(
    world: World, repository: GitRepository, certificate: Path
) -> None:
    """Answer watches with any JSON, and lists with something else."""

    async def answer(request: web.Request) -> web.Response:
        kind, _, number = request.path.split("/")[1].partition("-")
        if kind == "answer":
            return answer_of(*ANSWERS[int(number)])
        # A server that does not stream lists is asked for pages.
        return answer_of(400, {}) if "watch" in request.query else answer_of(200, LISTS[int(number)])

    paths = [f"{kind}-{number}" for kind, of in (("answer", ANSWERS), ("list", LISTS)) for number in range(len(of))]
    await told_of_each(world, repository, certificate, answer, dict.fromkeys(paths, "is unreachable since"))
