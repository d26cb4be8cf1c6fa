"""A private repository on a laptop: the simulator follows it with the Secret of its Pipeline, or says why it cannot."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, LABEL_CREDENTIALS
from kardinal.promotion.kinds import BUNDLE, PIPELINE
from kardinal_local.simulator import forget_limits
from tests.bundles.reading import condition
from tests.cli.conftest import Cli
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.secret_values import secret_value
from tests.support.smart_server import PASSWORD, USER, SmartServer, self_signed, serving
from tests.support.world import World


@pytest.fixture
def server(repository: GitRepository, tmp_path: Path) -> Iterator[SmartServer]:
    """Yield a server of `gitops.git` whose certificate only `ca.crt` of the Secret knows."""
    repository.git("config", "http.receivepack", "true")
    directory = tmp_path / "authority"
    directory.mkdir()
    with serving(repository.path.parent, self_signed(directory)) as server:
        yield server


def secret(server: SmartServer, authority: Path, *, hosts: str | None = None, **data: str) -> JsonObject:
    text = next(authority.iterdir()).read_text()
    values = data or {"username": USER, "password": PASSWORD, "ca.crt": text[text.index("-----BEGIN CERTIFICATE") :]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "git",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: CREDENTIALS_GIT},
            "annotations": {ANNOTATION_HOSTS: server.url.removeprefix("https://") if hosts is None else hosts},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def private(server: SmartServer) -> JsonObject:
    git = {"url": f"{server.url}/gitops.git", "provider": "git", "secretRef": {"name": "git"}}
    return pipeline(f"{server.url}/gitops.git", environments=[DEV], git=git)


async def not_simulated(world: World, reason: str) -> str:
    """Return the message of the condition once it has a reason."""

    def holds(stored: JsonObject) -> bool:
        found = condition(stored, "Simulated")
        return found is not None and (found["status"], found["reason"]) == ("False", reason)

    stored = await world.wait_for(PIPELINE, "my-app", holds, within=timedelta(minutes=5))
    return str((condition(stored, "Simulated") or {})["message"])


async def test_a_private_repository_behind_an_authority_of_its_own_is_verified(
    world: World, server: SmartServer, tmp_path: Path
) -> None:
    await world.apply(secret(server, tmp_path / "authority"))
    await start_controller(world)
    await start_simulator(world)
    await world.apply(private(server), bundle("my-app-1"))
    await world.wait_for(
        BUNDLE,
        "my-app-1",
        lambda obj: (obj.get("status") or {}).get("phase") == "Verified",
        within=timedelta(minutes=10),
    )
    assert condition(await world.get(PIPELINE, "my-app"), "Simulated") is None


@pytest.mark.parametrize("hosts", ["", "git.example.com", "127.0.0.1"])
async def test_a_secret_goes_to_no_host_that_it_does_not_name(
    world: World, server: SmartServer, tmp_path: Path, hosts: str
) -> None:
    await world.apply(secret(server, tmp_path / "authority", hosts=hosts))
    await start_simulator(world)
    await world.apply(private(server))
    told = await not_simulated(world, "BranchNotFollowed")
    assert f"git.secretRef: Secret {TEAM}/git is not marked" in told
    await world.idle(timedelta(minutes=2))
    assert server.requests == []


async def test_status_names_why_a_repository_is_not_followed_until_it_is_mended(
    world: World, server: SmartServer, tmp_path: Path, cli: Cli
) -> None:
    await start_simulator(world)
    await world.apply(private(server))
    assert "Secret team" in (told := await not_simulated(world, "BranchNotFollowed"))
    assert told.endswith(f"git.secretRef: Secret {TEAM}/git does not exist: create it")
    # Without a controller, status says that before anything else.
    await world.client.patch(PIPELINE, "my-app", TEAM, {"status": {"observedGeneration": 1}}, subresource="status")
    words = " ".join((await cli("status")).split())
    assert f"The simulator cannot do all of this: {told}" in words
    await world.apply(secret(server, tmp_path / "authority"))
    await world.wait_for(
        PIPELINE, "my-app", lambda obj: condition(obj, "Simulated") is None, within=timedelta(minutes=5)
    )


async def test_app_credentials_are_told_as_unsupported(world: World, server: SmartServer, tmp_path: Path) -> None:
    key = secret_value("private-key")
    await world.apply(secret(server, tmp_path / "authority", appId="7", privateKey=key))
    await start_simulator(world)
    await world.apply(private(server))
    told = await not_simulated(world, "BranchNotFollowed")
    assert "the simulator mints no tokens of a GitHub App" in told
    assert key not in str(await world.get(PIPELINE, "my-app"))


async def test_status_names_fields_and_objects_that_are_not_rendered(world: World, repository: GitRepository) -> None:
    path = f"environments/{DEV}"
    content = repository.read(f"{path}/kustomization.yaml")
    repository.commit(
        {
            f"{path}/kustomization.yaml": content.replace("resources:\n", "resources:\n  - job.yaml\n", 1)
            + "nameSuffix: -x\n",
            f"{path}/job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n",
        }
    )
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV]))
    told = await not_simulated(world, "FieldNotRendered")
    assert f"{DEV}: {path}/kustomization.yaml: nameSuffix is not understood without kustomize or kubectl" in told
    assert f"{DEV}: Job is not applied" in told
    repository.commit({f"{path}/kustomization.yaml": content}, delete=[f"{path}/job.yaml"])
    await world.wait_for(PIPELINE, "my-app", lambda obj: condition(obj, "Simulated") is None)


async def test_without_a_simulator_nothing_is_said_of_one_that_was_there(world: World, server: SmartServer) -> None:
    simulator = await start_simulator(world)
    await world.apply(private(server))
    await not_simulated(world, "BranchNotFollowed")
    await simulator.stop()
    await forget_limits(world.client)
    assert condition(await world.get(PIPELINE, "my-app"), "Simulated") is None
