"""A promotion over HTTPS, with credentials that only the repository ever gets."""

from __future__ import annotations

import asyncio
import base64
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, LABEL_CREDENTIALS
from kardinal.promotion.kinds import PROMOTION_STEP
from tests.agent.promotion_steps import (
    BUNDLE_NAME,
    create,
    deploy,
    is_held,
    promotion_step,
    reached,
    start_agent,
    state,
)
from tests.support.names import DEV, STAGING, TEAM
from tests.support.repository import GitRepository
from tests.support.smart_server import PASSWORD, USER, Exchange, SmartServer, self_signed, serving
from tests.support.ssh_server import find_sshd, new_key, serving_ssh
from tests.support.world import World


@pytest.fixture
def server(repository: GitRepository, certificate: Path) -> Iterator[SmartServer]:
    """Yield an HTTPS server of `gitops.git`."""
    repository.git("config", "http.receivepack", "true")
    with serving(repository.path.parent, certificate) as server:
        yield server


def secret(host: str, **data: str) -> JsonObject:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "git",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: CREDENTIALS_GIT},
            "annotations": {ANNOTATION_HOSTS: host},
        },
        "type": "Opaque",
        "data": encoded,
    }


def remote_step(server: SmartServer) -> JsonObject:
    made = promotion_step(f"{server.url}/gitops.git", provider="git")
    made["spec"]["git"]["secretRef"] = {"name": "git"}
    return made


async def test_a_promotion_lands_over_https(world: World, repository: GitRepository, server: SmartServer) -> None:
    agent = await start_agent(world)
    await deploy(world)
    await world.apply(secret(server.url.removeprefix("https://"), username=USER, token=f"{PASSWORD}\n"))
    with capture_logs() as lines:
        await create(world, remote_step(server))
        await reached(world, "Verified")
    assert len(repository.promotions(DEV)) == 1
    assert agent.repositories.fetches >= 1
    visible = [await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}"), *await world.events(), *lines]
    assert PASSWORD not in orjson.dumps(visible, default=str).decode()


async def test_refused_credentials_name_the_field_to_change(world: World, server: SmartServer) -> None:
    await start_agent(world)
    await world.apply(secret(server.url.removeprefix("https://"), username=USER, password="wrong-one"))
    await create(world, remote_step(server))
    await world.until(lambda: is_held(world))
    status = await state(world)
    assert status["state"] == "Promoting"
    assert status["message"].startswith("will be tried again: git-clone: git.secretRef: ")
    assert "wrong-one" not in status["message"]


@pytest.mark.parametrize("data", [{"user": "x"}, {"password": "x"}])
async def test_a_secret_without_the_right_keys_says_which_it_needs(
    world: World, server: SmartServer, data: dict[str, str]
) -> None:
    await start_agent(world)
    await world.apply(secret(server.url.removeprefix("https://"), **data))
    await create(world, remote_step(server))
    status = await reached(world, "Failed")
    assert re.search(rf"Secret {TEAM}/git has neither .*password.* token", status["message"])
    assert server.requests == []


async def test_a_stalled_server_is_named_in_the_status_and_delays_no_other_promotion(
    world: World, repository: GitRepository, server: SmartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def stall(exchange: Exchange, path: str) -> bool:
        over.wait(60)
        return False

    server.trouble = stall
    monkeypatch.setattr("kardinal_agent.execution.effects.STEP_DEADLINE", 1.0)
    await start_agent(world)
    await world.apply(secret(server.url.removeprefix("https://"), username=USER, password=PASSWORD))
    await deploy(world, STAGING)
    try:
        await create(world, remote_step(server), promotion_step(repository, STAGING))
        async with asyncio.timeout(20):
            while "retry" not in await state(world):
                await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{STAGING}")
            assert (await state(world))["retry"]["lastError"] == "git-clone: no answer in time"
            while (await state(world, STAGING)).get("state") != "Verified":
                await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{STAGING}")
    finally:
        over.set()
        monkeypatch.undo()
    await deploy(world)
    await reached(world, "Verified")
    assert len(repository.promotions(DEV)) == 1


@pytest.mark.skipif(find_sshd() is None, reason="needs sshd (Debian: openssh-server)")
async def test_a_promotion_lands_over_ssh_with_the_key_of_its_secret(
    world: World, repository: GitRepository, tmp_path: Path
) -> None:
    key = new_key()
    with serving_ssh(tmp_path / "ssh", key.public) as sshd:
        made = promotion_step(sshd.url(repository.path), provider="git")
        made["spec"]["git"]["secretRef"] = {"name": "git"}
        await start_agent(world)
        await deploy(world)
        data = {"ssh-privatekey": key.private, "known_hosts": sshd.known_hosts}
        await world.apply(secret(f"127.0.0.1:{sshd.port}", **data))
        with capture_logs() as lines:
            await create(world, made)
            await reached(world, "Verified")
    assert len(repository.promotions(DEV)) == 1
    visible = [await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}"), *await world.events(), *lines]
    assert key.private.splitlines()[2] not in orjson.dumps(visible, default=str).decode()


async def test_a_secret_brings_the_authority_of_its_host(
    world: World, repository: GitRepository, tmp_path: Path
) -> None:
    repository.git("config", "http.receivepack", "true")
    certificate = self_signed(tmp_path)
    with serving(repository.path.parent, certificate) as server:
        text = certificate.read_text()
        data = {"username": USER, "password": PASSWORD, "ca.crt": text[text.index("-----BEGIN CERT") :]}
        await start_agent(world)
        await deploy(world)
        await world.apply(secret(server.url.removeprefix("https://"), **data))
        await create(world, remote_step(server))
        await reached(world, "Verified")
    assert len(repository.promotions(DEV)) == 1
