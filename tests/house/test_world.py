"""A world comes to rest, tells when it does not, and moves time only in between."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from kardinal.git import GitRunner
from kardinal.kube import Client, NotFound
from kardinal.objects import CONFIG_MAP, Key
from kardinal.promotion.kinds import PIPELINE
from kardinal.runtime import Manager, Result, Watch
from tests.support import settle
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.world import World

LATER = timedelta(seconds=2)


class Marker:
    """A program that answers every ConfigMap named `ping` with one named `pong`, a little later."""

    def __init__(self, client: Client, world: World) -> None:
        self.manager = Manager(client, clock=world.clock, name="marker")
        self.runner = GitRunner(workers=1)
        self.seen: dict[Key, float] = {}
        self.hindrance = asyncio.Event()
        self.hindrance.set()
        self._clock = world.clock
        self._client = client
        self._maps = self.manager.informer(CONFIG_MAP)
        self.manager.controller("marker", self, [Watch(self._maps)])

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        self.hindrance.set()
        await self.manager.stop()
        self.runner.close()

    async def reconcile(self, key: Key) -> Result:
        await self.hindrance.wait()
        if key.name != "ping" or self._maps.get(key.namespace, "pong"):
            return Result()
        seen = self.seen.setdefault(key, self._clock.monotonic())
        if self._clock.monotonic() - seen < LATER.total_seconds():
            return Result(requeue_after=LATER)
        await self._client.create(CONFIG_MAP, config_map("pong"))
        return Result()


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": TEAM}}


async def start_marker(world: World) -> Marker:
    return await world.run(lambda client: Marker(client, world), identity="simulator")


async def test_a_world_serves_the_custom_resources(world: World) -> None:
    await world.apply(pipeline("https://example.com/repository.git"))

    assert (await world.get(PIPELINE, "my-app"))["spec"]["historyLimit"] == 20
    with pytest.raises(NotFound):
        await world.get(PIPELINE, "other")


async def test_programs_and_server_agree_on_what_time_it_is(world: World) -> None:
    before = world.clock.now().replace(microsecond=0)
    (made,) = await world.apply(pipeline("https://example.com/repository.git"))
    assert before <= datetime.fromisoformat(made["metadata"]["creationTimestamp"]) <= world.clock.now()


async def test_rest_means_that_every_informer_holds_what_the_server_holds(world: World) -> None:
    marker = await start_marker(world)
    for number in range(20):
        await world.apply(config_map(f"other-{number}"))
    await world.settle()

    [informer] = marker.manager.informers
    assert len(informer.list(TEAM)) == 20
    assert marker.manager.idle


@pytest.mark.virtual_time("is about that clock")
async def test_time_moves_only_to_the_next_timer_and_only_at_rest(world: World) -> None:
    await start_marker(world)
    before = world.clock.now()
    await world.apply(config_map("ping"))
    await world.settle()
    assert world.clock.now() == before
    assert await world.find(CONFIG_MAP, "pong") is None

    await world.wait_for(CONFIG_MAP, "pong", bool)

    assert world.clock.now() - before == LATER


@pytest.mark.virtual_time("is about that clock")
async def test_living_for_a_while_fires_what_is_due_and_stops_there(world: World) -> None:
    await start_marker(world)
    before = world.clock.now()
    await world.apply(config_map("ping"))
    await world.live(LATER / 2)
    assert await world.find(CONFIG_MAP, "pong") is None
    await world.live(LATER)
    assert await world.find(CONFIG_MAP, "pong") is not None
    assert world.clock.now() - before == LATER * 1.5


async def test_a_world_that_does_not_rest_says_what_keeps_it_busy(world: World) -> None:
    marker = await start_marker(world)
    marker.hindrance.clear()
    await world.apply(config_map("ping"))

    with pytest.raises(pytest.fail.Exception) as failure:
        await settle.settle(world, real_seconds=0.3)

    assert "not at rest after 0.3 s:" in str(failure.value)
    assert "Marker: marker: 0 ready, at work on" in str(failure.value)
    assert "ping" in str(failure.value)


@pytest.mark.virtual_time("is about that clock")
async def test_a_condition_that_never_holds_says_so_when_nothing_is_left_to_happen(world: World) -> None:
    with pytest.raises(pytest.fail.Exception) as failure:
        await world.wait_for(CONFIG_MAP, "never", bool)
    assert "pending timers:\n  none" in str(failure.value)
    assert f"ConfigMap {TEAM}/never: <class 'bool'>" in str(failure.value)


@pytest.mark.virtual_time("is about that clock")
async def test_a_condition_gets_no_more_virtual_time_than_it_was_given(world: World) -> None:
    await start_marker(world)
    await world.apply(config_map("ping"))

    with pytest.raises(pytest.fail.Exception) as failure:
        await world.wait_for(CONFIG_MAP, "pong", bool, within=LATER / 2)

    assert "not within 0:00:01:" in str(failure.value)
    assert "pending timers:" in str(failure.value)


async def test_a_job_in_a_thread_keeps_a_world_from_resting(world: World) -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()

    def job() -> None:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()

    await world.settle()
    working = asyncio.create_task(asyncio.to_thread(job))
    await asyncio.sleep(0)
    unrest = world.unrest()
    release.set()
    await working
    await world.settle()
    assert unrest == ["a thread is at work"]


async def test_a_program_can_be_stopped_and_started_again(world: World) -> None:
    first = await start_marker(world)
    await world.stop(first)
    await world.apply(config_map("ping"))
    await start_marker(world)
    await world.wait_for(CONFIG_MAP, "pong", bool)
    assert first.seen == {}
