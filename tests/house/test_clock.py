"""Virtual time: what the tests of every other room trust."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from kardinal.clock import Clock
from tests.support.clock import VirtualClock


def test_time_stands_still_until_it_is_advanced(clock: VirtualClock) -> None:
    injected: Clock = clock
    before = injected.now()
    fired: list[str] = []
    injected.call_later(3600, lambda: fired.append("an hour later"))

    assert injected.now() == before
    assert fired == []
    assert clock.advance_to_next_timer()
    assert injected.now() - before == timedelta(hours=1)
    assert fired == ["an hour later"]
    assert not clock.advance_to_next_timer()


def test_the_first_day_is_a_tuesday(clock: VirtualClock) -> None:
    assert clock.now().strftime("%A") == "Tuesday"


def test_timers_fire_in_order_of_their_deadlines(clock: VirtualClock) -> None:
    fired: list[int] = []
    for delay in (3, 1, 2):
        clock.call_later(delay, lambda delay=delay: fired.append(delay))  # type: ignore[misc]
    while clock.advance_to_next_timer():
        pass
    assert fired == [1, 2, 3]


def test_a_cancelled_timer_does_not_fire_and_is_no_deadline(clock: VirtualClock) -> None:
    timer = clock.call_later(1, lambda: pytest.fail("the timer was cancelled"))
    timer.cancel()
    assert clock.next_deadline is None
    assert not clock.advance_to_next_timer()
    assert clock.monotonic() == 0


def test_a_timer_cancelled_by_another_of_the_same_instant_does_not_fire(clock: VirtualClock) -> None:
    clock.call_later(1, lambda: second.cancel())  # noqa: PLW0108 - not yet bound
    second = clock.call_later(1, lambda: pytest.fail("the timer was cancelled"))
    assert clock.advance_to_next_timer()


async def test_a_sleeper_wakes_when_its_time_has_come(clock: VirtualClock) -> None:
    async def sleep_twice() -> float:
        await clock.sleep(10)
        await clock.sleep(20)
        return clock.monotonic()

    sleeper = asyncio.create_task(sleep_twice())
    await clock.advance(29)
    assert not sleeper.done()
    await clock.advance(1)
    assert await sleeper == 30


async def test_a_cancelled_sleeper_leaves_no_timer(clock: VirtualClock) -> None:
    sleeper = asyncio.create_task(clock.sleep(10))
    await asyncio.sleep(0)
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    assert clock.timers == []
