"""Deliveries of Git hosts: they wake the promotions that they are about, and cost nothing otherwise."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import io
from datetime import timedelta
from typing import Any

import aiohttp
import orjson
import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import CREDENTIALS_WEBHOOK, LABEL_CREDENTIALS
from kardinal.promotion.api.names import ANNOTATION_WOKEN
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_local.plane.audit import WRITES
from tests.agent.promotion_steps import promotion_step
from tests.http.conftest import REPOSITORY, Program, start_api
from tests.support.names import DEV, STAGING, TEAM
from tests.support.objects import pipeline
from tests.support.secret_values import secret_value
from tests.support.world import World

SECRET_VALUE = secret_value("long-enough")
PATH = f"/webhooks/gitea/{TEAM}/my-app"


def git_webhook(value: str = SECRET_VALUE, label: str = CREDENTIALS_WEBHOOK) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "gitea-webhook", "namespace": TEAM, "labels": {LABEL_CREDENTIALS: label}},
        "data": {"webhookSecret": base64.b64encode(value.encode()).decode()},
    }


def of_pull_request(number: int, branch: str = "") -> bytes:
    return orjson.dumps({"pull_request": {"number": number, "head": {"ref": branch}}})


def of_push(branch: str) -> bytes:
    return orjson.dumps({"ref": f"refs/heads/{branch}"})


async def waiting_step(world: World, environment: str, number: int, state: str = "WaitingForMerge") -> None:
    made = promotion_step(REPOSITORY, environment, provider="gitea")
    await world.apply(made)
    noted = {"number": number, "url": f"https://git.example.com/{number}", "branch": f"kardinal/{environment}"}
    body = {"status": {"state": state, "pullRequest": noted}}
    name = made["metadata"]["name"]
    await world.client.patch(PROMOTION_STEP, name, TEAM, body, kind=PatchType.MERGE, subresource="status")


async def woken(world: World, environment: str) -> str:
    step = await world.get(PROMOTION_STEP, f"my-app-1-{environment}")
    return str((step["metadata"].get("annotations") or {}).get(ANNOTATION_WOKEN, ""))


@pytest.fixture
async def program(world: World) -> Program:
    """Return the server beside a Pipeline with a webhook and two promotions that wait for a merge."""
    way = pipeline(REPOSITORY, provider="gitea")
    way["spec"]["git"]["webhookSecretRef"] = {"name": "gitea-webhook"}
    await world.apply(way, git_webhook())
    await waiting_step(world, DEV, 7)
    await waiting_step(world, STAGING, 8)
    return await start_api(world)


class Host:
    """The sender of deliveries."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def deliver(
        self, body: bytes | io.BytesIO, *, secret: str = SECRET_VALUE, path: str = PATH, **headers: str
    ) -> tuple[int, Any]:
        signature = hmac.new(
            secret.encode(), bytes(body if isinstance(body, bytes) else b""), hashlib.sha256
        ).hexdigest()
        signed = {"X-Gitea-Signature": signature, "X-Gitea-Event": "pull_request"} | headers
        async with self._session.post(f"{self._url}{path}", data=body, headers=signed) as answer:
            return answer.status, await answer.text()


@pytest.fixture
def host(program: Program, session: aiohttp.ClientSession) -> Host:
    return Host(program.api.url, session)


async def test_a_delivery_wakes_the_promotion_of_its_pull_request_alone(world: World, host: Host) -> None:
    assert (await host.deliver(of_pull_request(7)))[0] == 202
    await world.settle()
    assert await woken(world, DEV)
    assert not await woken(world, STAGING)


@pytest.mark.parametrize("branch", ["main", f"kardinal/{DEV}"])
async def test_a_push_wakes_those_whose_branch_or_base_it_is(world: World, host: Host, branch: str) -> None:
    await host.deliver(of_push(branch))
    await world.settle()
    assert await woken(world, DEV)
    assert bool(await woken(world, STAGING)) is (branch == "main")


def _woken_steps(world: World) -> int:
    return world.audit.count(verbs=WRITES, resource="promotionsteps.kardinal.io")


async def test_many_deliveries_are_one_wake_now_and_one_after_them(world: World, host: Host) -> None:
    await world.settle()
    writes = _woken_steps(world)
    answers = await asyncio.gather(*(host.deliver(of_pull_request(7)) for _ in range(100)))
    assert {status for status, _ in answers} == {202}
    await world.settle()
    assert _woken_steps(world) == writes + 1
    first = await woken(world, DEV)
    await world.live(timedelta(seconds=5))
    assert _woken_steps(world) == writes + 2
    assert await woken(world, DEV) > first


async def test_a_promotion_that_waits_for_nothing_is_not_woken(world: World, host: Host) -> None:
    await waiting_step(world, DEV, 7, state="HealthChecking")
    await world.settle()
    assert (await host.deliver(of_pull_request(7)))[0] == 202
    await world.live(timedelta(seconds=5))
    assert not await woken(world, DEV)


async def test_unauthenticated_delivery_gets_one_answer_and_wakes_nothing(world: World, host: Host) -> None:
    body = of_pull_request(7)
    answers = [
        await host.deliver(body, secret="another-secret-of-some-length"),
        await host.deliver(body, secret=""),
        await host.deliver(body, secret="\0" * 32, path=f"/webhooks/gitea/{TEAM}/no-such"),
        await host.deliver(body, path=f"/webhooks/gitea/{TEAM}/no-such"),
        await host.deliver(body, path="/webhooks/gitea/no-such/my-app"),
        await host.deliver(body, path=f"/webhooks/forgejo/{TEAM}/my-app"),
        await host.deliver(body, path=f"/webhooks/no-such/{TEAM}/my-app"),
        await host.deliver(body, **{"X-Gitea-Signature": "é"}),
        await host.deliver(b"not json", secret="another-secret-of-some-length"),
    ]
    assert {status for status, _ in answers} == {401}
    assert len({text for _, text in answers}) == 1
    await world.settle()
    assert not await woken(world, DEV)


async def test_a_thousand_stray_deliveries_cost_no_write_and_no_memory(
    world: World, host: Host, program: Program
) -> None:
    await world.settle()
    writes = world.audit.writes
    requests = sum(world.audit.counts.values())
    body = of_pull_request(7)
    for start in range(0, 1000, 100):
        await asyncio.gather(
            *(
                host.deliver(body, secret="x" * 20, path=PATH if number % 2 else f"/webhooks/gitea/{TEAM}/app-{number}")
                for number in range(start, start + 100)
            )
        )
    await world.settle()
    assert world.audit.writes == writes
    # The Secret is read once in five seconds.
    assert sum(world.audit.counts.values()) - requests <= 20
    assert len(program.secrets) == 1
    assert not await woken(world, DEV)


@pytest.mark.parametrize(
    "secret",
    [git_webhook(label="git"), git_webhook(value="short"), git_webhook(value="")],
    ids=["for another purpose", "guessable", "empty"],
)
async def test_a_secret_that_is_not_for_webhooks_signs_nothing(world: World, host: Host, secret: JsonObject) -> None:
    await world.apply(secret)
    value = base64.b64decode(secret["data"]["webhookSecret"]).decode()
    assert (await host.deliver(of_pull_request(7), secret=value))[0] == 401
    await world.settle()
    assert not await woken(world, DEV)


async def test_a_signed_delivery_that_cannot_be_read_says_so(host: Host) -> None:
    status, text = await host.deliver(b"payload=%7B%7D")
    assert status == 400
    assert "application/json" in text


async def test_a_large_delivery_is_not_read(host: Host) -> None:
    assert (await host.deliver(io.BytesIO(b"x" * (1024 * 1024 + 1))))[0] == 413


async def test_too_many_deliveries_of_one_pipeline_are_turned_away(host: Host) -> None:
    statuses = [(await host.deliver(of_pull_request(99)))[0] for _ in range(601)]
    assert statuses.count(202) == 600
    assert statuses[-1] == 429
