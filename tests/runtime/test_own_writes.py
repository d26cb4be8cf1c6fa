"""A run reads its own writes: through a manager, on a server whose watches can be held back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kardinal.kube import Client, recorded_writes
from kardinal.kube.writes import note_write
from kardinal.objects import Key
from kardinal.runtime import Channel, Manager, Result, Watch
from kardinal.runtime.consistency import Consistency
from tests.runtime.apiserver import WIDGET, WidgetServer
from tests.runtime.conftest import turns, until
from tests.runtime.test_controller import Scripted
from tests.support.clock import VirtualClock

KEY = Key("default", "a")


class Writing:
    """A reconciler that writes at its first run and looks at the cache at its second."""

    def __init__(self, manager: Manager, write: Callable[[], Awaitable[object]]) -> None:
        self.informer = manager.informer(WIDGET)
        self.write = write
        self.found: list[object] = []

    async def reconcile(self, key: Key) -> Result:
        obj = self.informer.get(*key)
        self.found.append(obj and obj.get("spec"))
        if len(self.found) == 1:
            await self.write()
        return Result()


async def test_the_run_after_a_write_waits_until_the_cache_has_seen_it(
    server: WidgetServer, client: Client, clock: VirtualClock
) -> None:
    await server.put("a", spec="old")
    manager = Manager(client, clock=clock, name="test")

    async def write() -> None:
        server.lag.clear()
        await client.patch(WIDGET, "a", "default", {"spec": "new"})

    reconciler = Writing(manager, write)
    channel = Channel()
    manager.controller("w", reconciler, [Watch(manager.informer(WIDGET)), channel])
    await manager.start()
    await until(lambda: server.writes)
    channel.push(KEY)
    await turns(50)
    assert reconciler.found == ["old"]
    assert not manager.idle
    server.lag.set()
    await until(lambda: manager.idle)
    assert reconciler.found[:2] == ["old", "new"]
    sample = {"controller": "w", "outcome": "seen"}
    assert manager.metrics.get_sample_value("kardinal_stale_waits_total", sample) == 1
    await manager.stop()


async def test_the_run_after_a_creation_waits_for_the_new_object(
    server: WidgetServer, client: Client, clock: VirtualClock
) -> None:
    manager = Manager(client, clock=clock, name="test")

    async def write() -> None:
        server.lag.clear()
        await client.create(WIDGET, {"metadata": {"name": "a", "namespace": "default"}, "spec": "made"})

    reconciler = Writing(manager, write)
    channel = Channel()
    manager.controller("w", reconciler, [channel])
    await manager.start()
    channel.push(KEY)
    await until(lambda: server.writes)
    channel.push(KEY)
    await turns(50)
    assert reconciler.found == [None]
    server.lag.set()
    await until(lambda: reconciler.found == [None, "made"])
    await manager.stop()


async def test_the_run_after_a_deletion_waits_until_the_object_is_gone(
    server: WidgetServer, client: Client, clock: VirtualClock
) -> None:
    await server.put("a", spec="old")
    manager = Manager(client, clock=clock, name="test")

    async def write() -> None:
        server.lag.clear()
        await client.delete(WIDGET, "a", "default")

    reconciler = Writing(manager, write)
    channel = Channel()
    manager.controller("w", reconciler, [channel])
    await manager.start()
    channel.push(KEY)
    await until(lambda: server.writes)
    channel.push(KEY)
    await turns(50)
    assert reconciler.found == ["old"]
    server.lag.set()
    await until(lambda: reconciler.found == ["old", None])
    await manager.stop()


async def test_a_write_the_watch_will_never_carry_is_not_waited_for(
    server: WidgetServer, client: Client, clock: VirtualClock
) -> None:
    manager = Manager(client, clock=clock, name="test")
    manager.informer(WIDGET, namespace="elsewhere")
    manager.informer(WIDGET, labels="shard=x")

    async def act(_: Key) -> Result:
        await client.create(
            WIDGET, {"metadata": {"name": "a", "namespace": "default", "labels": {"shard": "y"}}, "spec": 1}
        )
        return Result()

    reconciler = Scripted(act)
    channel = Channel()
    manager.controller("w", reconciler, [channel])
    await manager.start()
    server.lag.clear()
    for expected in (1, 2, 3):
        channel.push(KEY)
        await until(lambda expected=expected: len(reconciler.seen) == expected and manager.idle)  # type: ignore[misc]
    sample = {"controller": "w", "outcome": "seen"}
    assert manager.metrics.get_sample_value("kardinal_stale_waits_total", sample) == 0
    server.lag.set()
    await manager.stop()


async def test_the_wait_for_own_writes_ends_and_is_counted(
    server: WidgetServer, client: Client, clock: VirtualClock
) -> None:
    await server.put("a", spec="old")
    manager = Manager(client, clock=clock, name="test")
    informer = manager.informer(WIDGET)
    outcomes: list[str] = []
    consistency = Consistency(lambda: [informer], waited=outcomes.append, patience=0.01)
    await manager.start()
    server.lag.clear()
    with recorded_writes() as writes:
        await client.patch(WIDGET, "a", "default", {"spec": "new"})
    consistency.note(KEY, writes)
    await consistency.wait(KEY)
    assert outcomes == ["timeout"]
    # What was waited for once is not waited for again.
    await consistency.wait(KEY)
    assert outcomes == ["timeout"]
    server.lag.set()
    await manager.stop()


async def test_an_object_whose_last_finalizer_went_is_waited_for_by_its_absence(
    server: WidgetServer, client: Client, clock: VirtualClock
) -> None:
    before = await server.put("a")
    manager = Manager(client, clock=clock, name="test")
    informer = manager.informer(WIDGET)
    outcomes: list[str] = []
    consistency = Consistency(lambda: [informer], waited=outcomes.append)
    await manager.start()
    # The answer carries the old revision: comparing revisions would say that it is seen already.
    answer = {**before, "metadata": {**before["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    with recorded_writes() as writes:
        note_write(WIDGET, answer)
    consistency.note(KEY, writes)
    waiting = asyncio.create_task(consistency.wait(KEY))
    await turns()
    assert not waiting.done()
    await server.remove("a")
    await waiting
    assert outcomes == ["seen"]
    await manager.stop()
