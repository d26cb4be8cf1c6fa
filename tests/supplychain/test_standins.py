"""The stand-ins of hack/standins, which tests and the example use in the place of Flux, kpack and Tekton."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from hack.kube.assets import built
from hack.registry.assets import REGISTRY
from hack.registry.server import running_registry
from hack.standins.images import Registry, layer_of
from hack.standins.kinds import GIT_REPOSITORY, IMAGE, KINDS, TEST_RUN, manifests
from hack.standins.running import running_standins
from kardinal.kube import Client
from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.conditions import find_condition
from tests.support.names import TEAM
from tests.support.world import World

SECONDS = 40


@dataclass
class Bench:
    """A namespace in which the stand-ins work, with a Git repository and a registry."""

    world: World
    repository: Path
    registry: str

    @property
    def client(self) -> Client:
        return self.world.client

    def commit(self, files: dict[str, str]) -> str:
        """Push a commit with these files; returns its id."""
        work = self.repository.parent / "work"
        if not work.exists():
            git("clone", "--quiet", str(self.repository), str(work))
        for path, content in files.items():
            (work / path).write_text(content)
        git("add", ".", at=work)
        git("commit", "--quiet", "--message=change", at=work)
        git("push", "--quiet", "origin", "HEAD:main", at=work)
        return git("rev-parse", "HEAD", at=work)

    async def make(self, kind: ResourceType, name: str, **spec: Any) -> None:
        identity = {"apiVersion": kind.api_version, "kind": kind.kind}
        await self.client.create(kind, {**identity, "metadata": {"name": name, "namespace": TEAM}, "spec": spec})

    async def until(self, kind: ResourceType, name: str, is_there: Callable[[JsonObject], bool]) -> JsonObject:
        """Return the status once it is as wanted."""
        async with (
            asyncio.timeout(SECONDS),
            self.client.watch(kind, TEAM, initial_events=True) as events,
        ):
            async for event in events:
                status: JsonObject = event.object.get("status") or {}
                if event.object["metadata"].get("name") == name and is_there(status):
                    return status
        raise AssertionError("the watch has ended")

    async def source(self, commit: str) -> JsonObject:
        """Return the artifact of a commit."""
        revision = f"main@sha1:{commit}"
        status = await self.until(GIT_REPOSITORY, "shop", lambda it: artifact_of(it).get("revision") == revision)
        return artifact_of(status)

    async def until_succeeded_is(self, name: str, wanted: str) -> str:
        """Return the message of the condition of a test run once it has this status."""

        def found(status: JsonObject) -> JsonObject:
            return find_condition(status, "Succeeded") or {}

        return str(found(await self.until(TEST_RUN, name, lambda it: found(it).get("status") == wanted))["message"])


def artifact_of(status: JsonObject) -> JsonObject:
    found: JsonObject = status.get("artifact") or {}
    return found


def git(*arguments: str, at: Path | None = None) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    done = subprocess.run(["git", *identity, *arguments], cwd=at, capture_output=True, check=True, timeout=30)
    return done.stdout.decode().strip()


@asynccontextmanager
async def bench(world: World, directory: Path) -> AsyncIterator[Bench]:
    if "SUPPLYCHAIN" not in os.environ or not built(REGISTRY):
        pytest.skip("`make test-supplychain` runs it")
    repositories = directory / "git"
    git("init", "--quiet", "--bare", "--initial-branch=main", str(repositories / "shop.git"))
    with ExitStack() as stack:
        registry = await asyncio.to_thread(stack.enter_context, running_registry())
        async with running_standins(
            world.client,
            kubeconfig=world.server.kubeconfig,
            namespace=TEAM,
            directory=directory,
            repositories=repositories,
        ):
            yield Bench(world, repositories / "shop.git", f"127.0.0.1:{registry.port}")


def test_accounts_of_standins_have_rights_on_their_own_kinds_alone() -> None:
    rules = {
        manifest["metadata"]["name"]: manifest["rules"]
        for resource, manifest in manifests(TEAM)
        if resource.kind == "Role"
    }
    assert set(rules) == set(KINDS)
    for name, found in rules.items():
        assert {group for rule in found for group in rule["apiGroups"]} == {"standins.example.com"}
        assert {resource.partition("/")[0] for rule in found for resource in rule["resources"]} == {KINDS[name].plural}


async def test_a_push_becomes_an_image_with_its_files(world: World, tmp_path: Path) -> None:
    async with bench(world, tmp_path) as made, aiohttp.ClientSession() as session:
        first = made.commit({"page.txt": "one", "Makefile": "test:\n\tgrep -q one page.txt\n"})
        await made.make(GIT_REPOSITORY, "shop", url=str(made.repository), ref={"branch": "main"}, interval="1s")
        artifact = await made.source(first)
        tag = f"{made.registry}/shop:latest"
        await made.make(IMAGE, "shop", tag=tag, source={"blob": {"url": artifact["url"]}})
        status = await made.until(IMAGE, "shop", lambda it: "latestImage" in it)
        registry = Registry(session)
        assert status["latestImage"] == f"{made.registry}/shop@{await registry.digest(tag)}"
        assert await registry.read_file(status["latestImage"], "workspace/page.txt") == b"one"

        second = made.commit({"page.txt": "two"})
        assert (await made.source(second))["url"] != artifact["url"]


async def test_a_builder_builds_again_when_its_base_moves(world: World, tmp_path: Path) -> None:
    async with bench(world, tmp_path) as made, aiohttp.ClientSession() as session:
        registry = Registry(session)
        base = f"{made.registry}/base:1"
        await registry.push(base, layer_of([("etc/release", False, b"old")]))
        commit = made.commit({"page.txt": "one"})
        await made.make(GIT_REPOSITORY, "shop", url=str(made.repository), ref={"branch": "main"}, interval="1s")
        url = (await made.source(commit))["url"]
        await made.make(IMAGE, "shop", tag=f"{made.registry}/shop", source={"blob": {"url": url}}, base=base)
        before = await made.until(IMAGE, "shop", lambda it: "latestImage" in it)
        await registry.push(base, layer_of([("etc/release", False, b"new")]))
        after = await made.until(IMAGE, "shop", lambda it: it.get("buildCounter") == 2)
        for status, release in ((before, b"old"), (after, b"new")):
            assert await registry.read_file(status["latestImage"], "etc/release") == release
            assert await registry.read_file(status["latestImage"], "workspace/page.txt") == b"one"


async def test_a_runner_reports_the_result_of_make_test(world: World, tmp_path: Path) -> None:
    async with bench(world, tmp_path) as made:
        good = made.commit({"page.txt": "one", "Makefile": "test:\n\tgrep one page.txt\n"})
        await made.make(GIT_REPOSITORY, "shop", url=str(made.repository), ref={"branch": "main"}, interval="1s")
        url = (await made.source(good))["url"]
        for name, behaviour in (("good", "run"), ("failing", "fail"), ("hanging", "hang"), ("silent", "silent")):
            await made.make(TEST_RUN, name, source={"url": url}, behaviour=behaviour)
        bad = made.commit({"page.txt": "two"})
        await made.make(TEST_RUN, "bad", source={"url": (await made.source(bad))["url"]})
        said = {}
        for name, result in (("good", "True"), ("failing", "False"), ("bad", "False"), ("hanging", "Unknown")):
            said[name] = await made.until_succeeded_is(name, result)
        assert "one" in said["good"]
        assert "told to fail" in said["failing"]
        assert "status" not in await made.client.get(TEST_RUN, "silent", TEAM)
