"""An API server of the control plane, alone with its Pipelines."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest

from kardinal.clock import Clock
from kardinal.extensions import webhook_parsers
from kardinal.git import GitRunner
from kardinal.kube import Client
from kardinal.objects import SECRET
from kardinal.promotion.kinds import PIPELINE, PROMOTION_STEP
from kardinal.runtime import Manager
from kardinal_controller.attestations import Attestations
from kardinal_controller.http import Bodies, BundlePosts, HostSecrets, HostWebhooks, HttpServer, Wakes
from tests.support.identities import SYSTEM_NAMESPACE
from tests.support.objects import pipeline
from tests.support.registry import EXTENSIONS
from tests.support.webhook import Ci, webhook_secret
from tests.support.world import World

__all__ = ["Program", "start_api"]

REPOSITORY = "https://git.example.com/acme/gitops.git"


@dataclass(eq=False)
class Program:
    manager: Manager
    api: HttpServer
    secrets: HostSecrets
    runner: GitRunner = field(default_factory=lambda: GitRunner(workers=1))

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()
        self.runner.close()


async def start_api(world: World, *, clock: Clock | None = None) -> Program:
    """Start the server and what it needs; `clock` is its own, where the time of the world will not do."""

    def build(client: Client) -> Program:
        manager = Manager(client, clock=world.clock, name="api")
        attestations = Attestations(client, namespace=SYSTEM_NAMESPACE)
        pipelines = manager.informer(PIPELINE)
        own = clock or world.clock
        wakes = Wakes(client, manager.informer(PROMOTION_STEP), clock=own)
        parsers = webhook_parsers(EXTENSIONS)
        secrets = HostSecrets(client, clock=own)
        bodies = Bodies()
        hosts = HostWebhooks(secrets, pipelines, wakes=wakes, parsers=parsers, clock=own, bodies=bodies)
        posts = BundlePosts(
            client,
            pipelines,
            clock=own,
            recorder=manager.recorder,
            attestations=attestations,
            bodies=bodies,
        )
        server = HttpServer((*posts.groups(), hosts.group()), address="127.0.0.1:0", per_address=0)
        manager.add(attestations)
        manager.add(server)
        return Program(manager, server, secrets)

    return await world.run(build, identity="controller")


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def api(world: World, session: aiohttp.ClientSession) -> Ci:
    await world.apply(pipeline(REPOSITORY, provider="git"))
    await world.client.create(SECRET, webhook_secret())
    program = await start_api(world)
    return Ci(program.api.url, session, world.clock)
