"""Controllers: what a reconcile's outcome leads to, and what its next run sees."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
import structlog
from structlog.contextvars import get_contextvars

from kardinal.kube import Backoff, Conflict
from kardinal.objects import JsonObject, Key
from kardinal.runtime import KeyMemory, Result, TerminalError
from kardinal.runtime.consistency import Consistency
from kardinal.runtime.controller import Controller
from kardinal.runtime.metrics import Metrics
from kardinal.runtime.queue import PriorityQueue
from tests.runtime.conftest import turns, until
from tests.support.clock import VirtualClock

KEY = Key("default", "a")
EXACT = Backoff(base=0.005, cap=1000.0)


@dataclass
class Scripted:
    """A reconciler that does what a test says, and remembers for whom."""

    act: Callable[[Key], Awaitable[Result]]
    seen: list[Key] = field(default_factory=list)

    async def reconcile(self, key: Key) -> Result:
        self.seen.append(key)
        return await self.act(key)


async def nothing(_: Key) -> Result:
    return Result()


class Rig:
    """One controller with its queue and figures, without a server."""

    def __init__(
        self,
        clock: VirtualClock,
        act: Callable[[Key], Awaitable[Result]],
        *,
        concurrency: int = 1,
        deadline: float = 5.0,
        backoff: Backoff = EXACT,
        memory: KeyMemory | None = None,
    ) -> None:
        self.metrics = Metrics(clock=clock)
        self.queue = PriorityQueue(clock=clock)
        self.reconciler = Scripted(act)
        figures = self.metrics.controller("test", self.queue, concurrency=concurrency)
        self.controller = Controller(
            "test",
            self.reconciler,
            queue=self.queue,
            consistency=Consistency(tuple, waited=lambda _: None),
            metrics=figures,
            clock=clock,
            concurrency=concurrency,
            backoff=backoff,
            deadline=deadline,
            memory=memory,
        )

    async def __aenter__(self) -> Rig:
        self._task = asyncio.create_task(self.controller.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.queue.shut_down()
        await self._task

    async def rest(self) -> None:
        await until(lambda: self.controller.idle)

    def count(self, sample: str, **labels: str) -> float:
        value = self.metrics.registry.get_sample_value(sample, {"controller": "test", **labels})
        assert value is not None
        return value


async def test_all_figures_exist_from_the_start(clock: VirtualClock) -> None:
    rig = Rig(clock, nothing, concurrency=3)
    for result in ("success", "error", "requeue_after"):
        assert rig.count("controller_runtime_reconcile_total", result=result) == 0
    for name in ("reconcile_errors", "terminal_reconcile_errors", "reconcile_panics", "reconcile_timeouts"):
        assert rig.count(f"controller_runtime_{name}_total") == 0
    assert rig.count("controller_runtime_max_concurrent_reconciles") == 3
    assert rig.count("controller_runtime_active_workers") == 0
    assert rig.count("workqueue_depth", name="test", priority="0") == 0
    assert rig.count("workqueue_adds_total", name="test") == 0
    assert rig.count("workqueue_retries_total", name="test") == 0
    for outcome in ("seen", "timeout"):
        assert rig.count("kardinal_stale_waits_total", outcome=outcome) == 0


async def test_a_failure_is_tried_again_ever_later_while_other_keys_proceed(clock: VirtualClock) -> None:
    async def act(key: Key) -> Result:
        if key == KEY:
            raise ConnectionResetError("no")
        return Result()

    async with Rig(clock, act) as rig:
        rig.queue.add(KEY)
        for delay in (0.005, 0.010, 0.020, 0.040):
            await rig.rest()
            assert clock.next_deadline == pytest.approx(clock.monotonic() + delay)
            rig.queue.add(Key("default", "other"))
            await rig.rest()
            clock.advance_to_next_timer()
        await rig.rest()
        assert rig.reconciler.seen.count(KEY) == 5
        assert rig.count("controller_runtime_reconcile_errors_total") == 5
        assert rig.count("controller_runtime_reconcile_panics_total") == 0
        assert rig.count("workqueue_retries_total", name="test") == 5
        assert rig.count("controller_runtime_reconcile_total", result="success") == 4


async def test_success_makes_the_next_failure_the_first(clock: VirtualClock) -> None:
    outcomes = iter([True, True, False, True])

    async def act(_: Key) -> Result:
        if next(outcomes):
            raise OSError("no")
        return Result()

    async with Rig(clock, act) as rig:
        rig.queue.add(KEY)
        await rig.rest()
        for _ in range(2):
            clock.advance_to_next_timer()
            await rig.rest()
        rig.queue.add(KEY)
        await rig.rest()
        assert clock.next_deadline == pytest.approx(clock.monotonic() + 0.005)


async def test_a_terminal_error_is_not_tried_again_and_leaves_no_count(clock: VirtualClock) -> None:
    async def act(_: Key) -> Result:
        raise TerminalError("spec.x is wrong")

    async with Rig(clock, act) as rig:
        rig.queue.add(KEY)
        await rig.rest()
        assert clock.timers == []
        assert len(rig.controller._failures) == 0
        assert rig.count("controller_runtime_terminal_reconcile_errors_total") == 1


async def test_requeue_after_is_a_delay_and_not_a_failure(clock: VirtualClock) -> None:
    async def act(_: Key) -> Result:
        return Result(requeue_after=timedelta(minutes=3))

    async with Rig(clock, act) as rig:
        rig.queue.add(KEY, priority=7)
        await rig.rest()
        assert clock.next_deadline == 180
        assert rig.count("kardinal_workqueue_delayed", name="test") == 1
        await clock.advance(180)
        await rig.rest()
        assert len(rig.reconciler.seen) == 2
        assert rig.count("workqueue_retries_total", name="test") == 0
        assert rig.count("controller_runtime_reconcile_total", result="requeue_after") == 2


@pytest.mark.parametrize(("wanted", "expected"), [(None, 7), (-5, -5)])
async def test_the_priority_is_kept_for_the_next_run_unless_the_result_names_another(
    clock: VirtualClock, wanted: int | None, expected: int
) -> None:
    async def act(_: Key) -> Result:
        return Result(requeue_after=timedelta(seconds=1), priority=wanted)

    async with Rig(clock, act) as rig:
        rig.queue.add(KEY, priority=7)
        await rig.rest()
        clock.advance_to_next_timer()
        # Ready again, and no worker has had a turn yet.
        assert dict(rig.queue.depth) == {expected: 1}


@pytest.mark.parametrize("error", [KeyError("x"), AttributeError("x"), AssertionError(), ZeroDivisionError()])
async def test_a_bug_is_counted_as_one_and_the_worker_lives_on(
    clock: VirtualClock, error: Exception, logged_bugs: list[str]
) -> None:
    async def act(key: Key) -> Result:
        if key == KEY:
            raise error
        return Result()

    async with Rig(clock, act) as rig:
        rig.queue.add(KEY)
        rig.queue.add(Key("default", "b"))
        await rig.rest()
        assert rig.count("controller_runtime_reconcile_panics_total") == 1
        assert rig.count("controller_runtime_reconcile_total", result="success") == 1
    assert len(logged_bugs) == 1
    logged_bugs.clear()


async def test_a_conflict_is_retried_quietly(clock: VirtualClock) -> None:
    async def act(_: Key) -> Result:
        raise Conflict(409, "Conflict", "somebody else wrote")

    with structlog.testing.capture_logs() as logs:
        async with Rig(clock, act) as rig:
            rig.queue.add(KEY)
            await rig.rest()
    assert {entry["log_level"] for entry in logs} == {"debug"}
    assert "reconcile met a conflict" in [entry["event"] for entry in logs]


async def test_a_run_that_takes_too_long_is_cut_and_counted(clock: VirtualClock) -> None:
    async def act(_: Key) -> Result:
        await asyncio.Event().wait()
        return Result()

    async with Rig(clock, act, deadline=0.01) as rig:
        rig.queue.add(KEY)
        await rig.rest()
        assert rig.count("controller_runtime_reconcile_timeouts_total") == 1
        assert rig.count("controller_runtime_reconcile_total", result="error") == 1


async def test_a_timeout_of_the_reconciler_itself_is_an_ordinary_error(clock: VirtualClock) -> None:
    async def act(_: Key) -> Result:
        async with asyncio.timeout(0):
            await asyncio.sleep(1)
        return Result()

    async with Rig(clock, act) as rig:
        rig.queue.add(KEY)
        await rig.rest()
        assert rig.count("controller_runtime_reconcile_timeouts_total") == 0
        assert rig.count("controller_runtime_reconcile_errors_total") == 1


async def test_a_cancellation_from_inside_is_an_error_and_not_the_end(clock: VirtualClock) -> None:
    async def act(_: Key) -> Result:
        raise asyncio.CancelledError

    async with Rig(clock, act) as rig:
        rig.queue.add(KEY)
        await rig.rest()
        assert rig.count("controller_runtime_reconcile_errors_total") == 1
        assert rig.count("controller_runtime_reconcile_timeouts_total") == 0


async def test_a_controller_that_is_cancelled_ends_its_runs(clock: VirtualClock) -> None:
    ended = []

    async def act(_: Key) -> Result:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return Result()

    rig = Rig(clock, act, concurrency=2)
    task = asyncio.create_task(rig.controller.run())
    rig.queue.add(KEY)
    await until(lambda: rig.queue.processing)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]
    assert rig.count("controller_runtime_reconcile_errors_total") == 0


async def test_never_more_runs_at_once_than_workers(clock: VirtualClock) -> None:
    active: list[int] = []

    async def act(_: Key) -> Result:
        active.append(int(rig.count("controller_runtime_active_workers")))
        await turns(3)
        return Result()

    rig = Rig(clock, act, concurrency=3)
    async with rig:
        for number in range(20):
            rig.queue.add(Key("default", str(number)))
        await rig.rest()
    assert max(active) == 3
    assert len(active) == 20


async def test_log_lines_of_a_run_say_whose_they_are(clock: VirtualClock) -> None:
    contexts: list[dict[str, object]] = []

    async def act(_: Key) -> Result:
        contexts.append(get_contextvars())
        return Result()

    async with Rig(clock, act) as rig:
        for _ in range(2):
            rig.queue.add(KEY)
            await rig.rest()
    first, second = contexts
    assert {name: first[name] for name in ("controller", "namespace", "name")} == {
        "controller": "test",
        "namespace": "default",
        "name": "a",
    }
    assert first["reconcileID"] != second["reconcileID"]
    assert get_contextvars() == {}


async def test_a_thousand_runs_that_never_wait_leave_the_loop_to_others(clock: VirtualClock) -> None:
    async with Rig(clock, nothing, concurrency=4) as rig:
        for number in range(1000):
            rig.queue.add(Key("default", str(number)))
        await turns(2)
        # Another task got a turn long before the work was done.
        assert 0 < len(rig.reconciler.seen) < 100
        await rig.rest()
        assert len(rig.reconciler.seen) == 1000


class Cache:
    """The objects that exist, as far as a memory asks."""

    def __init__(self, *keys: Key) -> None:
        self.keys = set(keys)

    def get(self, namespace: str, name: str) -> JsonObject | None:
        return {} if Key(namespace, name) in self.keys else None


async def test_memory_of_a_key_is_dropped_everywhere_once_a_run_finds_its_object_gone(clock: VirtualClock) -> None:
    other = Key("default", "b")
    cache = Cache(KEY, other)
    memory = KeyMemory(cache)
    failures: dict[Key, int] = memory.map()
    urgent = memory.set()
    closed: list[Key] = []
    memory.on_drop(closed.append)

    async def remember(key: Key) -> Result:
        failures[key] = 1
        urgent.add(key)
        return Result()

    async with Rig(clock, remember, memory=memory) as rig:
        for key in (KEY, other):
            rig.queue.add(key)
        await rig.rest()
        assert (set(failures), urgent, closed) == ({KEY, other}, {KEY, other}, [])
        cache.keys.remove(KEY)
        rig.queue.add(KEY)
        await rig.rest()
        assert (set(failures), urgent, closed) == ({other}, {other}, [KEY])


def test_part_of_a_memory_is_dropped_by_itself_and_with_the_whole() -> None:
    memory = KeyMemory(Cache())
    part = memory.part()
    failures: dict[Key, int] = memory.map()
    watched: dict[Key, int] = part.map()
    failures[KEY] = watched[KEY] = 1
    part.drop(KEY)
    assert (failures, watched) == ({KEY: 1}, {})
    watched[KEY] = 2
    memory.drop(KEY)
    assert (failures, watched) == ({}, {})


async def test_memory_of_an_object_that_is_gone_is_dropped_where_the_run_fails(clock: VirtualClock) -> None:
    memory = KeyMemory(Cache())
    failures: dict[Key, int] = memory.map()

    async def fail(key: Key) -> Result:
        failures[key] = 1
        raise TerminalError("no")

    async with Rig(clock, fail, memory=memory) as rig:
        rig.queue.add(KEY)
        await rig.rest()
    assert failures == {}
