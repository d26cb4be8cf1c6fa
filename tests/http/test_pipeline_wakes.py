"""Deliveries about pull requests wake a Pipeline that asks for statuses on others, and few do."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import orjson
import pytest

from kardinal.promotion.kinds import PIPELINE
from tests.http.conftest import REPOSITORY, Program, start_api
from tests.http.test_hosts import Host, git_webhook, host
from tests.support.objects import pipeline
from tests.support.world import World

__all__ = ["host"]


@pytest.fixture
async def program(world: World) -> Program:
    """Return the server beside a Pipeline that asks for statuses, and nothing that is promoted."""
    way = pipeline(REPOSITORY, provider="gitea")
    way["spec"]["git"] |= {"webhookSecretRef": {"name": "gitea-webhook"}, "statusOnOthers": True}
    await world.apply(way, git_webhook())
    return await start_api(world)


def of_action(action: Any, **payload: Any) -> bytes:
    pull = {"number": 99, "head": {"ref": "x", "sha": "a" * 40}}
    return orjson.dumps({"action": action, "pull_request": pull, **payload})


async def woken(world: World) -> str:
    await world.settle()
    return str(((await world.get(PIPELINE, "my-app")).get("status") or {}).get("wokenAt", ""))


@pytest.mark.virtual_time("the interval between two wakes")
async def test_a_pull_request_that_comes_or_changes_wakes_the_pipeline(world: World, host: Host) -> None:
    assert not await woken(world)
    last = ""
    for body in (
        of_action("opened"),
        of_action("synchronized"),
        of_action("reopened"),
        of_action("edited", changes={"ref": {"from": "elsewhere"}}),
    ):
        assert (await host.deliver(body))[0] == 202
        now = await woken(world)
        assert now > last
        last = now
        await world.live(timedelta(seconds=11))


async def test_other_events_wake_no_pipeline(world: World, host: Host) -> None:
    await world.settle()
    writes = world.audit.writes
    for body in (
        of_action("labeled"),
        of_action("closed"),
        of_action("edited", changes={"title": {"from": "x"}}),
        of_action(["opened"]),
        orjson.dumps({"action": "opened", "issue": {"number": 7}}),
        orjson.dumps({"ref": "refs/heads/main"}),
    ):
        assert (await host.deliver(body))[0] == 202
    assert not await woken(world)
    assert world.audit.writes == writes


@pytest.mark.virtual_time("the interval between two wakes")
async def test_hundreds_of_deliveries_are_one_write_now_and_one_after_them(world: World, host: Host) -> None:
    await world.settle()
    writes = world.audit.writes
    for _ in range(5):
        await asyncio.gather(*(host.deliver(of_action("synchronized")) for _ in range(100)))
    await world.settle()
    assert world.audit.writes == writes + 1
    await world.live(timedelta(seconds=30))
    assert world.audit.writes == writes + 2


async def test_a_pipeline_that_does_not_ask_is_not_written_to(world: World, host: Host) -> None:
    way = pipeline(REPOSITORY, provider="gitea")
    way["spec"]["git"] |= {"webhookSecretRef": {"name": "gitea-webhook"}, "statusOnOthers": False}
    await world.apply(way)
    await world.settle()
    writes = world.audit.writes
    assert (await host.deliver(of_action("opened")))[0] == 202
    await world.settle()
    assert world.audit.writes == writes
