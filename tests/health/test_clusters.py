"""An environment that is proved in another cluster, which a kubeconfig in a Secret leads to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from kardinal.kube import Client, load_connection
from kardinal.objects import SECRET, JsonObject
from kardinal_local.plane import Authority, LocalPlane
from tests.agent.promotion_steps import create, deploy, promotion_step, put, reached, start_agent, state
from tests.support.names import DEV, STAGING, TEAM
from tests.support.repository import IMAGE, GitRepository
from tests.support.secret_values import keep_secret_in
from tests.support.world import World

CLUSTER = "eu"


@dataclass
class Elsewhere:
    """Another cluster, and a client with every right there."""

    plane: LocalPlane
    client: Client

    @property
    def kubeconfig(self) -> str:
        return self.plane.kubeconfig.read_text()


pytestmark = pytest.mark.local_only("the other cluster is a local plane, on the clock of this one")


@pytest.fixture
async def elsewhere(world: World, authority: Authority, tmp_path: Path) -> AsyncIterator[Elsewhere]:
    keep_secret_in(tmp_path / "elsewhere")
    plane = await LocalPlane.start(tmp_path / "elsewhere", clock=world.clock, authority=authority)
    async with Client(await load_connection(plane.kubeconfig), user_agent="test") as client:
        yield (elsewhere := Elsewhere(plane, client))
    await elsewhere.plane.stop()


async def put_secret(world: World, text: str, *, marked: bool = True) -> None:
    """Put a kubeconfig into the Secret, on one line: each of its lines would be taken for a secret."""
    config = orjson.dumps(yaml.safe_load(text)).decode() if text else ""
    labels = {"kardinal.io/credentials": "kubeconfig"} if marked else {}
    metadata: JsonObject = {"name": CLUSTER, "namespace": TEAM, "labels": labels}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"kubeconfig": config}}
    await world.client.apply(SECRET, secret, field_manager="test", force=True)


def proved_elsewhere(repository: GitRepository, environment: str = DEV, **health: Any) -> JsonObject:
    resource = {"name": "my-app", "namespace": environment}
    proof = {"type": "resource", "resource": resource, "cluster": CLUSTER, **health}
    return promotion_step(repository, environment, health=proof)


def watches() -> list[str]:
    """Return the watches of this process that were opened at work."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("watch ")]


async def message_with(world: World, words: str) -> str:
    async def found() -> str | None:
        message = (await state(world)).get("message") or ""
        return message if words in message else None

    message: str = await world.until(found)
    return message


async def test_workloads_of_the_other_cluster_count_alone(
    world: World, repository: GitRepository, elsewhere: Elsewhere
) -> None:
    agent = await start_agent(world)
    await put_secret(world, elsewhere.kubeconfig)
    await deploy(world)
    await create(world, proved_elsewhere(repository), proved_elsewhere(repository, STAGING))
    await message_with(world, f"Deployment {DEV}/my-app to exist")
    await deploy(world, client=elsewhere.client, image=f"{IMAGE}:1.0.0")
    await message_with(world, f"has {IMAGE}:1.0.0")
    await deploy(world, client=elsewhere.client)
    await reached(world, "Verified")
    await deploy(world, STAGING, client=elsewhere.client)
    await reached(world, "Verified", STAGING)
    await world.live(timedelta(seconds=1))
    assert agent.manager.dynamic.informers == []


async def test_unreachable_cluster_fails_nothing_and_counts_again_when_it_is_back(
    world: World, repository: GitRepository, elsewhere: Elsewhere, authority: Authority
) -> None:
    await start_agent(world)
    await put_secret(world, elsewhere.kubeconfig)
    await deploy(world, client=elsewhere.client, image=f"{IMAGE}:1.0.0")
    await create(world, proved_elsewhere(repository, timeout="2h", failureGrace="1s"))
    await message_with(world, "must run")
    port = int(yaml.safe_load(elsewhere.kubeconfig)["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    directory = elsewhere.plane.kubeconfig.parent
    await elsewhere.plane.stop()
    message = await message_with(world, f"cluster {CLUSTER} is unreachable since ")
    assert "127.0.0.1" not in message
    await world.live(timedelta(hours=1))
    assert (await state(world))["state"] == "HealthChecking"
    elsewhere.plane = await LocalPlane.start(directory, port=port, clock=world.clock, authority=authority)
    await deploy(world, client=elsewhere.client)
    await reached(world, "Verified")


async def test_broken_cluster_secret_is_reported_until_mended(
    world: World, repository: GitRepository, elsewhere: Elsewhere
) -> None:
    await start_agent(world)
    await deploy(world, client=elsewhere.client)
    await create(world, proved_elsewhere(repository))
    await message_with(world, f"Secret {TEAM}/{CLUSTER} does not exist")
    await put_secret(world, elsewhere.kubeconfig, marked=False)
    await message_with(world, f"label secret {CLUSTER} kardinal.io/credentials=kubeconfig")
    await put_secret(world, "")
    await message_with(world, "has no key kubeconfig")
    await put_secret(world, elsewhere.kubeconfig)
    await reached(world, "Verified")


async def test_a_kubeconfig_that_runs_a_program_runs_none(
    world: World, repository: GitRepository, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    config = yaml.safe_load(elsewhere.kubeconfig)
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": [str(made)]}
    config["users"][0]["user"] = {"exec": plugin}
    await start_agent(world)
    await put_secret(world, yaml.safe_dump(config))
    await create(world, proved_elsewhere(repository))
    await message_with(world, "exec of user")
    assert not made.exists()


async def test_ended_promotions_leave_no_connection(
    world: World, repository: GitRepository, elsewhere: Elsewhere
) -> None:
    await start_agent(world)
    await put_secret(world, elsewhere.kubeconfig)
    await deploy(world, client=elsewhere.client)
    await create(world, proved_elsewhere(repository))
    await reached(world, "Verified")
    await put(world, proved_elsewhere(repository, STAGING, timeout="2s"))
    await reached(world, "HealthChecking", STAGING)
    assert watches() == ["watch Deployment"]
    await reached(world, "Failed", STAGING)
    await world.until(lambda: not watches())
