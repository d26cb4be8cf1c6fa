"""A chain whose source is a real GitRepository: Flux's source-controller fetches it, and serves its artifact."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import tarfile
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml

from hack.fluxsource.assets import DEFINITIONS, FLUX_SOURCE
from hack.kube.assets import built, obtain
from kardinal.objects import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, SECRET, JsonObject
from kardinal_local.stack import until_served
from tests.supplychain.chains import Chains, blueprint, condition, config_map, resource, template, workload
from tests.support.accounts import rule
from tests.support.gitea import GiteaProject
from tests.support.names import TEAM
from tests.support.repository import create_repository
from tests.support.smart_server import PASSWORD, USER, serving
from tests.support.world import World

SECONDS = 60
STOP_SECONDS = 10.0

SOURCE = template(
    "source",
    {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "$(workload.metadata.name)$"},
        "spec": {
            "url": "$(workload.spec.source.git.url)$",
            "ref": "$(workload.spec.source.git.ref)$",
            "interval": "1s",
            "secretRef": {"name": "git"},
        },
    },
    kind="ClusterSourceTemplate",
    urlPath="status.artifact.url",
    revisionPath="status.artifact.revision",
    healthRule={"singleConditionType": "Ready"},
)
USES = template("config", config_map("built", url="$(source.url)$", revision="$(source.revision)$"))
CHAIN = blueprint(
    resource("source", kind="ClusterSourceTemplate"),
    resource("config", sources=[{"name": "source", "resource": "source"}]),
    serviceAccountRef={"name": "dev"},
)


@contextmanager
def source_controller(kubeconfig: Path, directory: Path, port: int) -> Iterator[None]:
    """Run the controller for the length of a block; it serves artifacts at `port` of this machine."""
    address = f"127.0.0.1:{port}"
    command = [str(obtain(FLUX_SOURCE) / "source-controller"), "--metrics-addr=0", "--health-addr=127.0.0.1:0"]
    command += [f"--storage-path={directory}", f"--storage-addr={address}", f"--storage-adv-addr={address}"]
    variables = os.environ | {"KUBECONFIG": str(kubeconfig), "RUNTIME_NAMESPACE": TEAM}
    log = directory.with_suffix(".log")
    with log.open("w") as output, subprocess.Popen(command, env=variables, stdout=output, stderr=output) as process:
        try:
            yield
            assert process.poll() is None, log.read_text()[-2000:]
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


@asynccontextmanager
async def sources(world: World, directory: Path, port: int) -> AsyncIterator[None]:
    """Install the kinds of Flux, and run its controller."""
    installed = sorted((obtain(FLUX_SOURCE) / DEFINITIONS).glob("*.yaml"))
    definitions = [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in installed]
    for each in definitions:
        await world.client.create(CUSTOM_RESOURCE_DEFINITION, each)
    await until_served(world.client, {each["metadata"]["name"] for each in definitions})
    directory.mkdir()
    with source_controller(world.server.kubeconfig, directory, port):
        yield


async def until_built(chains: Chains, revision: str) -> JsonObject:
    """Return the data of the object that is stamped with a revision of the source."""
    async with (
        asyncio.timeout(SECONDS),
        chains.world.client.watch(CONFIG_MAP, TEAM, initial_events=True) as events,
    ):
        async for event in events:
            data: JsonObject = event.object.get("data") or {}
            if data.get("revision") == revision:
                return data
    raise AssertionError("the watch has ended")


async def read(url: str, path: str) -> bytes:
    """Return a file of an artifact."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        packed = await answer.read()
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        found = archive.extractfile(path)
        assert found is not None
        return found.read()


async def flow(
    chains: Chains,
    *,
    directory: Path,
    port: int,
    url: str,
    credentials: dict[str, str],
    commit: Callable[[str], str],
) -> None:
    """Show that the artifacts of two commits reach the end of a chain. `commit` writes page.txt, and returns its id."""
    world = chains.world
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git", "namespace": TEAM}}
    await world.client.create(SECRET, secret | {"stringData": credentials})
    repositories = rule("*", on="gitrepositories", group="source.toolkit.fluxcd.io")
    await chains.account("dev", rule("*", on="configmaps"), repositories)
    first = await asyncio.to_thread(commit, "one")
    async with sources(world, directory, port):
        git_source = {"url": url, "ref": {"branch": "main"}}
        await chains.apply(SOURCE, USES, CHAIN, workload(source={"git": git_source}))
        built_of = await until_built(chains, f"main@sha1:{first}")
        assert await read(built_of["url"], "page.txt") == b"one"
        assert condition(await chains.status(), "Ready")[0] == "True"
        second = await asyncio.to_thread(commit, "two")
        built_of = await until_built(chains, f"main@sha1:{second}")
        assert await read(built_of["url"], "page.txt") == b"two"


@pytest.mark.timeout(2 * SECONDS + 20)
async def test_artifact_of_a_git_repository_is_the_source_of_a_chain(
    chains: Chains, tmp_path: Path, unused_tcp_port: int
) -> None:
    if "SUPPLYCHAIN" not in os.environ or not built(FLUX_SOURCE):
        pytest.skip("`make test-supplychain` runs it")
    repository = create_repository(tmp_path / "shop.git", {"README.md": "A shop"})
    with serving(tmp_path, None) as git:
        await flow(
            chains,
            directory=tmp_path / "artifacts",
            port=unused_tcp_port,
            url=f"{git.url}/shop.git",
            credentials={"username": USER, "password": PASSWORD},
            commit=lambda text: repository.commit({"page.txt": text}),
        )


@pytest.mark.timeout(2 * SECONDS + 60)
async def test_repository_on_gitea_is_the_source_of_a_chain(
    chains: Chains, tmp_path: Path, unused_tcp_port: int, gitea_project: GiteaProject
) -> None:
    if not built(FLUX_SOURCE):
        pytest.skip("source-controller is not built: python -m hack.fluxsource.assets")
    bot = gitea_project.people["bot"]
    authority = (gitea_project.server.directory / "ca.crt").read_text()

    def commit(text: str) -> str:
        path = f"{gitea_project.path}/contents/page.txt"
        body = {"content": b64encode(text.encode()).decode(), "message": text, "branch": "main"}
        status, found = gitea_project.ask("GET", path, by="alice")
        known = {"sha": found["sha"]} if status == 200 else {}
        made = gitea_project.api("PUT" if known else "POST", path, body | known, by="alice")
        return str(made["commit"]["sha"])

    credentials = {"username": bot.name, "password": bot.token, "ca.crt": authority}
    await flow(
        chains,
        directory=tmp_path / "artifacts",
        port=unused_tcp_port,
        url=gitea_project.url,
        credentials=credentials,
        commit=commit,
    )
