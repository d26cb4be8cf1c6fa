"""A promotion that is deleted while its push is under way: that is awaited, and what has landed is accounted for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, MutableMapping
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from kardinal.kube import NotFound
from kardinal.objects import GRAPH, NAMESPACE, JsonObject, ResourceType
from kardinal.promotion.api.names import branch_name, freeze_name
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from tests.agent.hosted import git_secret
from tests.agent.promotion_steps import BUNDLE_NAME, freeze_gate, reached
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import APPLICATION
from tests.support.smart_server import Exchange
from tests.support.world import World

NAME = f"{BUNDLE_NAME}-{DEV}"
SOON = timedelta(minutes=1)
_SECONDS = 20.0
_MOMENT = 0.02
"""Seconds of real time between two questions while a push is held, because nothing comes to rest."""

OBJECTS: dict[str, tuple[ResourceType, str]] = {
    "step": (PROMOTION_STEP, NAME),
    "graph": (GRAPH, BUNDLE_NAME),
    "bundle": (BUNDLE, BUNDLE_NAME),
    "pipeline": (PIPELINE, APPLICATION),
    "namespace": (NAMESPACE, TEAM),
}

Lines = list[MutableMapping[str, Any]]


class HeldPush:
    """The first push to a host, which Git gets when it is let go."""

    def __init__(self, host: FakeGitea) -> None:
        self._host = host
        self._begun = threading.Event()
        self._free = threading.Event()
        host.server.trouble = self._handle

    async def begun(self) -> None:
        """Wait until it has begun: from then on the programs do not come to rest."""
        assert await asyncio.to_thread(self._begun.wait, _SECONDS)

    def let_go(self) -> None:
        self._free.set()

    def _handle(self, exchange: Exchange, path: str) -> bool:
        if exchange.command == "POST" and path.endswith("/git-receive-pack") and not self._begun.is_set():
            self._begun.set()
            self._free.wait(_SECONDS)
        return self._host.handle(exchange, path)


@pytest.fixture
def push(gitea: FakeGitea) -> Iterator[HeldPush]:
    held = HeldPush(gitea)
    yield held
    held.let_go()


async def begin(world: World, gitea: FakeGitea, push: HeldPush, **flow: Any) -> JsonObject:
    """Promote until the push is under way; returns the PromotionStep."""
    await start_controller(world)
    made = pipeline(gitea.url, environments=[environment(DEV, **flow)], provider="gitea")
    made["spec"]["git"]["secretRef"] = {"name": "git"}
    await world.apply(freeze_gate(), git_secret(gitea), made)
    await world.settle()
    await world.apply(bundle(BUNDLE_NAME))
    step = await world.wait_for(PROMOTION_STEP, NAME, lambda step: "held by a freeze" in _message(step))
    await world.delete(POLICY_GATE, freeze_name(APPLICATION))
    await push.begun()
    return step


def _message(step: JsonObject) -> str:
    return (step.get("status") or {}).get("message") or ""


async def nothing_is_left(world: World) -> bool:
    return not any([await _count(world, resource) for resource in (BUNDLE, GRAPH, PROMOTION_STEP)])


async def _count(world: World, resource: ResourceType) -> int:
    try:
        return len(await world.objects(resource, TEAM))
    except NotFound:
        return 0


async def is_gone(world: World) -> None:
    """Wait until the PromotionStep is gone, while its push is held."""
    async with asyncio.timeout(_SECONDS):
        while await world.find(PROMOTION_STEP, NAME) is not None:
            await asyncio.sleep(_MOMENT)


def told(lines: Lines) -> list[tuple[str, str]]:
    """Return promotion and commit of the changes that the log says have landed."""
    return [(line["promotion"], line["commit"]) for line in lines if line["event"].startswith("a change has landed")]


@pytest.mark.parametrize("what", ["bundle", "namespace"])
async def test_a_change_that_lands_after_its_promotion_was_deleted_is_in_the_log(
    world: World, gitea: FakeGitea, push: HeldPush, what: str
) -> None:
    with capture_logs() as lines:
        await begin(world, gitea, push)
        await world.delete(*OBJECTS[what])
        await is_gone(world)
        push.let_go()
        await world.until(lambda: nothing_is_left(world), within=SOON)
        await world.until(lambda: told(lines), within=SOON)
    (commit,) = gitea.repository.promotions(DEV)
    assert told(lines) == [(f"{TEAM}/{NAME}", commit.sha)]


@pytest.mark.parametrize("what", ["step", "graph", "pipeline"])
async def test_a_change_that_lands_is_taken_over_by_the_promotion_that_goes_on(
    world: World, gitea: FakeGitea, push: HeldPush, what: str
) -> None:
    before = await begin(world, gitea, push)
    await world.delete(*OBJECTS[what])
    push.let_go()
    status = await reached(world, "HealthChecking", within=SOON)
    (commit,) = gitea.repository.promotions(DEV)
    assert status["commit"] == commit.sha
    after = await world.get(PROMOTION_STEP, NAME)
    assert (after["metadata"]["uid"] == before["metadata"]["uid"]) is (what == "pipeline")


@pytest.mark.parametrize("what", ["bundle", "namespace"])
async def test_a_proposal_whose_push_was_under_way_is_withdrawn(
    world: World, gitea: FakeGitea, push: HeldPush, what: str
) -> None:
    await begin(world, gitea, push, approval="pr-review")
    await world.delete(*OBJECTS[what])
    assert await world.find(PROMOTION_STEP, NAME) is not None
    push.let_go()
    await world.until(lambda: nothing_is_left(world), within=SOON)
    assert gitea.repository.branches() == ["main"]
    assert [pull.state for pull in gitea.pulls.values() if pull.state == "open"] == []


@pytest.mark.parametrize("what", ["step", "graph"])
async def test_a_proposal_whose_push_was_under_way_is_made_anew_by_the_promotion_that_goes_on(
    world: World, gitea: FakeGitea, push: HeldPush, what: str
) -> None:
    before = await begin(world, gitea, push, approval="pr-review")
    await world.delete(*OBJECTS[what])
    push.let_go()
    await world.wait_for(PROMOTION_STEP, NAME, lambda step: step["metadata"]["uid"] != before["metadata"]["uid"])
    await reached(world, "WaitingForMerge", within=SOON)
    assert gitea.repository.branches() == [branch_name(TEAM, BUNDLE_NAME, DEV), "main"]
    assert [pull.state for pull in gitea.pulls.values()].count("open") == 1


async def test_a_push_that_lasts_longer_than_its_step_and_its_promotion_is_in_the_log(
    world: World, gitea: FakeGitea, push: HeldPush, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kardinal_agent.execution.effects.STEP_DEADLINE", 0.5)
    with capture_logs() as lines:
        await begin(world, gitea, push)
        async with asyncio.timeout(_SECONDS):
            while "retry" not in (await world.get(PROMOTION_STEP, NAME))["status"]:
                await asyncio.sleep(_MOMENT)
        monkeypatch.undo()
        await world.delete(*OBJECTS["bundle"])
        await is_gone(world)
        push.let_go()
        await world.until(lambda: told(lines), within=SOON)
    (commit,) = gitea.repository.promotions(DEV)
    assert told(lines) == [(f"{TEAM}/{NAME}", commit.sha)]
