"""An API server of the control plane, alone with its Pipelines."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
import pytest

from kardinal.api import PIPELINE
from kardinal.git import GitRunner
from kardinal.kube import Client
from kardinal.objects import SECRET
from kardinal.runtime import Manager
from kardinal_controller.http import ApiServer
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.world import World

TOKEN = "t0ken-of-the-test"
KEY = "key-of-the-test"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: Any


class Api:
    """The server as CI sees it."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session

    async def post(self, body: Any, *, token: str | None = TOKEN, key: str | None = KEY, **headers: str) -> Answer:
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        if key is not None:
            headers["X-Kardinal-Signature-256"] = "sha256=" + hmac.new(key.encode(), raw, hashlib.sha256).hexdigest()
        async with self.session.post(f"{self.url}/api/v1/bundles", data=raw, headers=headers) as response:
            content = await response.read()
            return Answer(response.status, dict(response.headers), orjson.loads(content))


@dataclass(eq=False)
class Program:
    manager: Manager
    api: ApiServer
    runner: GitRunner = field(default_factory=lambda: GitRunner(workers=1))

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()
        self.runner.close()


@pytest.fixture
async def api(world: World) -> AsyncIterator[Api]:
    await world.apply(pipeline("https://git.example.com/acme/gitops.git", provider="git"))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "kardinal-webhook", "namespace": TEAM},
        "stringData": {"token": TOKEN, "hmacKey": KEY},
    }
    await world.client.create(SECRET, secret)

    def build(client: Client) -> Program:
        manager = Manager(client, clock=world.clock, name="api")
        server = ApiServer(client, manager.informer(PIPELINE), clock=world.clock, address="127.0.0.1:0")
        manager.add(server)
        return Program(manager, server)

    program = await world.run(build, identity="controller")
    async with aiohttp.ClientSession() as session:
        yield Api(program.api.url, session)
