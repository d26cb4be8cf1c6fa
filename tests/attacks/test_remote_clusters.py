"""Attacks by `health.cluster`: a kubeconfig that has the agent ask hosts which its author cannot reach."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from kardinal.api import BUNDLE, PROMOTION_STEP
from kardinal.objects import EVENT, SECRET, JsonObject
from tests.agent.promotion_steps import create, promotion_step, start_agent, state
from tests.support.names import TEAM
from tests.support.repository import GitRepository
from tests.support.world import World

INTERNAL = "internal-project-neptune"


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
