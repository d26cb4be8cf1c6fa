"""The manager: what starts before what, what ends a program, and that nothing is left of it."""

from __future__ import annotations

import asyncio
import os
import signal

import aiohttp
import orjson
import pytest

from kardinal.kube import Client
from kardinal.objects import Key
from kardinal.runtime import Channel, GraceExceeded, Manager, Result, SyncTimeout, UndeclaredInformer, Watch
from tests.runtime.apiserver import WIDGET, Answer, WidgetServer, refusal, watch_lines
from tests.runtime.conftest import turns, until
from tests.support.clock import VirtualClock

KEY = Key("default", "a")


class Part:
    """A runnable that writes down when it starts and stops."""

    def __init__(self, name: str, diary: list[str], *, fails: bool = False) -> None:
        self.name = name
        self.diary = diary
        self.fails = fails

    async def start(self) -> None:
        self.diary.append(f"{self.name} starts")
        if self.fails:
            raise OSError("the port is taken")

    async def stop(self) -> None:
        self.diary.append(f"{self.name} stops")


class SlowPart(Part):
    """A runnable whose stop waits until it is let go."""

    def __init__(self, name: str, diary: list[str]) -> None:
        super().__init__(name, diary)
        self.gate = asyncio.Event()

    async def stop(self) -> None:
        await super().stop()
        await self.gate.wait()
        self.diary.append(f"{self.name} has stopped")


class Diarist:
    """A reconciler that writes down its runs."""

    def __init__(self, diary: list[str]) -> None:
        self.diary = diary
        self.gate = asyncio.Event()
        self.gate.set()

    async def reconcile(self, key: Key) -> Result:
        self.diary.append(f"reconcile {key.name} begins")
        await self.gate.wait()
        self.diary.append(f"reconcile {key.name} ends")
        return Result()


@pytest.fixture
def diary() -> list[str]:
    return []


@pytest.fixture
def manager(client: Client, clock: VirtualClock) -> Manager:
    return Manager(client, clock=clock, name="test", probe_address="127.0.0.1:0", metrics_address="127.0.0.1:0")


def hold(release: asyncio.Event, server: WidgetServer) -> Answer:
    """Answer a watch-list only when released."""

    async def answer(request: aiohttp.web.Request) -> aiohttp.web.StreamResponse:
        await release.wait()
        return await server._watch(request)

    return answer


async def fetch(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def test_parts_start_after_the_caches_and_stop_in_reverse(
    server: WidgetServer, manager: Manager, diary: list[str]
) -> None:
    await server.put("a")
    informer = manager.informer(WIDGET)
    reconciler = Diarist(diary)
    manager.controller("w", reconciler, [Watch(informer)])
    manager.add(Part("first", diary))
    manager.add(Part("second", diary))
    await manager.start()
    assert informer.synced
    await until(lambda: manager.idle and len(diary) == 4)
    await manager.stop()
    assert diary == [
        "first starts",
        "second starts",
        "reconcile a begins",
        "reconcile a ends",
        "second stops",
        "first stops",
    ]


async def test_nothing_is_reconciled_before_every_cache_is_complete(
    server: WidgetServer, manager: Manager, diary: list[str]
) -> None:
    await server.put("a")
    release = asyncio.Event()
    server.fail_next("watchlist", hold(release, server))
    manager.controller(
        "w", Diarist(diary), [Watch(manager.informer(WIDGET)), Watch(manager.informer(WIDGET, namespace="x"))]
    )
    starting = asyncio.create_task(manager.start())
    await until(lambda: any(informer.synced for informer in manager.informers))
    await turns()
    assert diary == []
    assert await fetch(f"{manager.urls['probes']}/healthz") == (200, "ok")
    status, text = await fetch(f"{manager.urls['probes']}/readyz")
    assert (status, "caches failed: could not read Widget" in text) == (500, True)
    release.set()
    await starting
    assert (await fetch(f"{manager.urls['probes']}/readyz"))[0] == 200
    await until(lambda: diary)
    await manager.stop()


async def test_a_run_under_way_is_finished_and_none_is_begun_when_stopping(
    server: WidgetServer, manager: Manager, diary: list[str]
) -> None:
    reconciler = Diarist(diary)
    reconciler.gate.clear()
    channel = Channel()
    manager.controller("w", reconciler, [channel], concurrency=1)
    await manager.start()
    channel.push(KEY)
    channel.push(Key("default", "b"))
    await until(lambda: diary)
    stopping = asyncio.create_task(manager.stop())
    await turns()
    assert not stopping.done()
    reconciler.gate.set()
    await stopping
    assert diary == ["reconcile a begins", "reconcile a ends"]
    channel.push(KEY)
    assert manager.idle


async def test_component_that_does_not_stop_in_time_is_cancelled_and_named(
    client: Client, clock: VirtualClock, diary: list[str]
) -> None:
    manager = Manager(client, clock=clock, name="test", grace=0.05)
    reconciler = Diarist(diary)
    reconciler.gate.clear()
    channel = Channel()
    manager.controller("slow", reconciler, [channel])
    await manager.start()
    channel.push(KEY)
    await until(lambda: diary)
    with pytest.raises(GraceExceeded, match="controller slow"):
        await manager.stop()


async def test_a_run_that_does_not_end_leaves_the_helpers_their_time(
    client: Client, clock: VirtualClock, diary: list[str]
) -> None:
    manager = Manager(client, clock=clock, name="test", grace=0.05)
    reconciler = Diarist(diary)
    reconciler.gate.clear()
    channel = Channel()
    manager.controller("slow", reconciler, [channel])
    part = SlowPart("part", diary)
    manager.add(part)
    await manager.start()
    channel.push(KEY)
    await until(lambda: len(diary) == 2)
    stopping = asyncio.create_task(manager.stop())
    await until(lambda: diary[-1] == "part stops")
    part.gate.set()
    with pytest.raises(GraceExceeded, match=r"controller slow$"):
        await stopping
    assert diary[-1] == "part has stopped"


async def test_a_kind_that_cannot_be_read_is_named_when_starting_takes_too_long(
    server: WidgetServer, client: Client, clock: VirtualClock
) -> None:
    manager = Manager(client, clock=clock, name="test", sync_timeout=0.05)
    manager.informer(WIDGET)
    for _ in range(5):
        server.fail_next("watchlist", refusal(404, "NotFound"))
    with pytest.raises(SyncTimeout, match="could not read Widget"):
        await manager.start()


async def test_a_part_that_fails_to_start_stops_those_before_it(manager: Manager, diary: list[str]) -> None:
    manager.add(Part("good", diary))
    manager.add(Part("bad", diary, fails=True))
    manager.add(Part("never", diary))
    with pytest.raises(OSError, match="the port is taken"):
        await manager.start()
    assert diary == ["good starts", "bad starts", "bad stops", "good stops"]


async def test_the_first_failure_of_a_part_ends_the_program_and_is_what_it_raises(
    server: WidgetServer, manager: Manager, diary: list[str]
) -> None:
    nameless = {"type": "ADDED", "object": {"kind": "Widget", "metadata": {}}}
    manager.informer(WIDGET)
    manager.add(Part("part", diary))
    running = asyncio.create_task(manager.run())
    await until(lambda: diary)
    server.fail_next("watch", watch_lines(orjson.dumps(nameless) + b"\n"))
    server.cut_watches()
    with pytest.raises(KeyError, match="resourceVersion"):
        await running
    assert diary == ["part starts", "part stops"]


async def test_a_cache_that_dies_while_starting_ends_the_start(server: WidgetServer, manager: Manager) -> None:
    nameless = {"type": "ADDED", "object": {"kind": "Widget", "metadata": {}}}
    server.fail_next("watchlist", watch_lines(orjson.dumps(nameless) + b"\n"))
    manager.informer(WIDGET)
    with pytest.raises(KeyError, match="name"):
        await manager.start()


async def test_a_program_ends_by_its_stop_event(manager: Manager, diary: list[str]) -> None:
    manager.add(Part("part", diary))
    stop = asyncio.Event()
    running = asyncio.create_task(manager.run(stop))
    await until(lambda: diary)
    stop.set()
    await running
    assert diary == ["part starts", "part stops"]


async def test_a_program_asked_to_stop_while_it_starts_stops(server: WidgetServer, manager: Manager) -> None:
    server.fail_next("watchlist", hold(asyncio.Event(), server))
    manager.informer(WIDGET)
    stop = asyncio.Event()
    running = asyncio.create_task(manager.run(stop))
    await until(lambda: server.requests)
    stop.set()
    await running


async def test_a_signal_stops_and_a_second_one_does_not_wait(manager: Manager, diary: list[str]) -> None:
    reconciler = Diarist(diary)
    reconciler.gate.clear()
    channel = Channel()
    manager.controller("w", reconciler, [channel])
    manager.add(Part("part", diary))
    running = asyncio.create_task(manager.run())
    await until(lambda: "part starts" in diary)
    channel.push(KEY)
    await until(lambda: "reconcile a begins" in diary)
    os.kill(os.getpid(), signal.SIGTERM)
    await until(lambda: manager._state == "stopped")
    await turns()
    assert not running.done()
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert "reconcile a ends" not in diary


async def test_two_who_ask_for_the_same_objects_share_one_watch(server: WidgetServer, manager: Manager) -> None:
    assert manager.informer(WIDGET) is manager.informer(WIDGET)
    assert manager.informer(WIDGET) is not manager.informer(WIDGET, labels="a=b")
    await manager.start()
    await turns()
    assert server.verbs() == ["watchlist", "watchlist"]
    await manager.stop()


async def test_after_the_start_nothing_more_can_be_declared(manager: Manager, diary: list[str]) -> None:
    known = manager.informer(WIDGET)
    await manager.start()
    assert manager.informer(WIDGET) is known
    with pytest.raises(UndeclaredInformer, match="Widget"):
        manager.informer(WIDGET, namespace="other")
    with pytest.raises(RuntimeError, match="running"):
        manager.controller("w", Diarist(diary), [])
    with pytest.raises(RuntimeError, match="running"):
        manager.add(Part("late", diary))
    with pytest.raises(RuntimeError, match="running"):
        await manager.start()
    await manager.stop()
    with pytest.raises(RuntimeError, match="stopped"):
        await manager.start()


async def test_starting_and_stopping_ten_times_leaves_nothing(
    server: WidgetServer, client: Client, clock: VirtualClock, diary: list[str]
) -> None:
    for _ in range(10):
        manager = Manager(client, clock=clock, name="test", probe_address="127.0.0.1:0")
        manager.controller("w", Diarist(diary), [Watch(manager.informer(WIDGET))])
        await manager.start()
        await manager.stop()
        await manager.stop()
    # The leak detectors of the house look at what is left.


async def test_every_manager_counts_for_itself(server: WidgetServer, client: Client, clock: VirtualClock) -> None:
    first, second = (Manager(client, clock=clock, name=name) for name in ("first", "second"))
    first.informer(WIDGET)
    await first.start()
    await second.start()
    await server.put("a")
    sample = ("kardinal_informer_objects", {"kind": "Widget"})
    await until(lambda: first.metrics.get_sample_value(*sample) == 1)
    assert second.metrics.get_sample_value(*sample) is None
    await first.stop()
    await second.stop()


async def test_the_figures_are_served_and_count_requests(server: WidgetServer, manager: Manager) -> None:
    manager.informer(WIDGET)
    await manager.start()
    status, text = await fetch(f"{manager.urls['metrics']}/metrics")
    assert status == 200
    assert 'rest_client_requests_total{code="200",host="127.0.0.1:' in text
    assert 'kardinal_informer_objects{kind="Widget"} 0.0' in text
    assert "kardinal_event_loop_lag_seconds" in text
    await manager.stop()


async def test_ready_checks_are_named_listed_and_can_be_left_out(manager: Manager) -> None:
    manager.add_ready_check("git", lambda: "no disk")
    await manager.start()
    probes = manager.urls["probes"]
    status, text = await fetch(f"{probes}/readyz")
    assert status == 500
    assert text.splitlines() == ["[+]caches ok", "[-]git failed: no disk", "readyz check failed"]
    assert await fetch(f"{probes}/readyz?exclude=git") == (200, "ok")
    assert await fetch(f"{probes}/readyz?exclude=git&verbose") == (200, "[+]caches ok\nreadyz check passed\n")
    assert (await fetch(f"{probes}/readyz/git"))[0] == 500
    assert (await fetch(f"{probes}/readyz/caches"))[0] == 200
    assert (await fetch(f"{probes}/readyz/nothing"))[0] == 404
    await manager.stop()


async def test_busy_components_of_a_manager_are_listed(manager: Manager, diary: list[str]) -> None:
    reconciler = Diarist(diary)
    reconciler.gate.clear()
    channel = Channel()
    manager.controller("w", reconciler, [channel], concurrency=1)
    await manager.start()
    channel.push(KEY)
    channel.push(Key("default", "b"))
    await until(lambda: diary)
    assert manager.activity() == ["w: 1 ready, at work on ['default/a']"]
    reconciler.gate.set()
    await until(lambda: manager.idle)
    assert manager.activity() == []
    await manager.stop()


@pytest.mark.parametrize("address", ["8080", "host", "127.0.0.1:http", ":70000"])
async def test_an_address_that_is_none_is_refused(client: Client, clock: VirtualClock, address: str) -> None:
    manager = Manager(client, clock=clock, name="test", probe_address=address)
    with pytest.raises(ValueError, match="write host:port"):
        await manager.start()
