"""Clocks that are an hour apart, or are put right while a promotion waits: no timeout is early and no soak negative."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from kardinal.clock import Clock, Timer
from kardinal.kube import NotFound
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, reached, state
from tests.support.clock import VirtualClock
from tests.support.names import DEV, POLICIES, STAGING
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_agent, start_controller
from tests.support.repository import APPLICATION, IMAGE, GitRepository
from tests.support.reviewer import open_pull_requests
from tests.support.world import World

STEP = f"{BUNDLE_NAME}-{DEV}"
HOUR = timedelta(hours=1)
PROOF = {"resource": {"name": APPLICATION}}
BOTH = pytest.mark.parametrize("ahead", [HOUR, -HOUR], ids=["ahead", "behind"])


@dataclass(frozen=True)
class OtherClock:
    """The clock of a machine on which it is `ahead` later than elsewhere."""

    clock: Clock
    ahead: timedelta

    def now(self) -> datetime:
        return self.clock.now() + self.ahead

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self.clock.call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        await self.clock.sleep(delay)


@BOTH
async def test_a_timeout_is_not_early(world: World, repository: GitRepository, ahead: timedelta) -> None:
    await start_agent(world, clock=OtherClock(world.clock, ahead))
    await deploy(world, available=False)
    began = world.clock.now()
    await create(world, promotion_step(repository, health={"timeout": "3s"}))
    status = await reached(world, "Failed", within=timedelta(minutes=1))
    assert timedelta(seconds=3) <= world.clock.now() - began
    assert "not healthy within 3s" in status["message"]


@BOTH
@pytest.mark.virtual_time("a clock is put right, and ten minutes pass")
async def test_a_clock_that_is_put_right_neither_ends_nor_prolongs_a_health_check(
    world: World, repository: GitRepository, clock: VirtualClock, ahead: timedelta
) -> None:
    await start_agent(world)
    await deploy(world, available=False)
    await create(world, promotion_step(repository, health={"timeout": "10m"}))
    await reached(world, "HealthChecking")
    await world.live(timedelta(minutes=5))
    clock.turn_to(clock.now() + ahead)
    await deploy(world, image=f"{IMAGE}:1.0.5", available=False)
    await world.live(timedelta(minutes=4))
    assert (await state(world))["state"] == "HealthChecking"
    await reached(world, "Failed", within=timedelta(minutes=2))


@BOTH
@pytest.mark.local_only("a real server has its own clock, which is one of those compared")
async def test_a_soak_is_neither_early_nor_negative(world: World, repository: GitRepository, ahead: timedelta) -> None:
    """By the clock of the agent it has been healthy since an hour ago, or will be in an hour."""
    await start_controller(world, standalone=False)
    await start_agent(world, clock=OtherClock(world.clock, ahead))
    await deploy(world)
    await world.apply(gate("soak", "bundle.upstreamSoakMinutes >= 30", applies_to=STAGING, namespace=POLICIES))
    await world.apply(pipeline(repository, environments=[environment(DEV, health=PROOF), STAGING]))
    await world.apply(bundle(BUNDLE_NAME))
    await reached(world, "Verified")
    await world.live(timedelta(minutes=10))
    shut = await world.get(POLICY_GATE, f"{BUNDLE_NAME}-{STAGING}-soak")
    assert shut["status"]["ready"] is False
    assert shut["status"]["reason"].startswith("bundle.upstreamSoakMinutes = 0 ")
    await world.live(timedelta(minutes=19))
    assert await world.find(PROMOTION_STEP, f"{BUNDLE_NAME}-{STAGING}") is None
    # An hour that is still to come counts as no time.
    late = max(ahead, timedelta())
    await world.wait_for(PROMOTION_STEP, f"{BUNDLE_NAME}-{STAGING}", lambda _: True, within=late + timedelta(minutes=2))


@BOTH
@pytest.mark.local_only("a real server has its own clock, which is one of those compared")
async def test_an_agent_does_not_give_a_withdrawal_up_early(
    world: World, repository: GitRepository, ahead: timedelta
) -> None:
    await start_agent(world, clock=OtherClock(world.clock, ahead))
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    await is_withdrawn_when_the_host_is_back(world, repository)


@BOTH
@pytest.mark.local_only("a real server has its own clock, which is one of those compared")
async def test_a_control_plane_leaves_an_agent_its_time(
    world: World, repository: GitRepository, ahead: timedelta
) -> None:
    await start_controller(world, clock=OtherClock(world.clock, ahead))
    await start_agent(world, shard="eu")
    reviewed = environment(DEV, approval="pr-review", shard="eu")
    await world.apply(pipeline(repository, environments=[reviewed]), bundle(BUNDLE_NAME))
    await reached(world, "WaitingForMerge")
    await is_withdrawn_when_the_host_is_back(world, repository)


async def is_withdrawn_when_the_host_is_back(world: World, repository: GitRepository) -> None:
    """Delete a step whose host is gone for a while; its proposal is closed all the same."""
    away = repository.path.rename(repository.path.with_suffix(".gone"))
    await world.delete(BUNDLE, BUNDLE_NAME)
    with suppress(NotFound):  # a collector of garbage may be faster
        await world.delete(PROMOTION_STEP, STEP)
    await world.live(timedelta(minutes=4))
    away.rename(repository.path)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=5))
    assert await open_pull_requests(world, repository) == []


async def is_gone(world: World) -> bool:
    return await world.find(PROMOTION_STEP, STEP) is None
