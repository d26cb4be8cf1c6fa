"""Time that moves only when a test says so.

A test of an hour must not take an hour, and must not depend on how busy the machine is. `VirtualClock` keeps its timers
in a heap and fires them when the test advances it; between two advances no time passes at all. The trap: network and
threads live in real time, so a test that talks to a server must let it come to rest before it advances (see `settle`).
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

__all__ = ["VirtualClock", "VirtualTimer"]

TUESDAY_MORNING = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)

_BREATHS = 25
"""Turns of the event loop given to callbacks between two timers of `advance`; tasks without I/O need a handful."""


class VirtualTimer:
    """A pending call on virtual time."""

    def __init__(self, deadline: float, callback: Callable[[], None]) -> None:
        self.deadline = deadline
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def __repr__(self) -> str:
        name = getattr(self.callback, "__qualname__", repr(self.callback))
        return f"<timer {name} at {self.deadline:.3f} s>"


class VirtualClock:
    """A `kardinal.runtime.clock.Clock` whose hands a test moves."""

    def __init__(self, *, start: datetime = TUESDAY_MORNING) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, VirtualTimer]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def call_later(self, delay: float, callback: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(self._elapsed + max(delay, 0.0), callback)
        heapq.heappush(self._timers, (timer.deadline, next(self._order), timer))
        return timer

    async def sleep(self, delay: float) -> None:
        if delay <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake_sleeper() -> None:
            if not woken.done():
                woken.set_result(None)

        timer = self.call_later(delay, wake_sleeper)
        try:
            await woken
        finally:
            timer.cancel()

    @property
    def timers(self) -> list[VirtualTimer]:
        """The pending timers, the next one first."""
        return [timer for _, _, timer in sorted(self._timers) if not timer.cancelled]

    @property
    def next_deadline(self) -> float | None:
        """When the next timer is due on the `monotonic` scale."""
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def advance_to_next_timer(self) -> bool:
        """Move to the next deadline and fire every timer due then; False when no timer is pending."""
        deadline = self.next_deadline
        if deadline is None:
            return False
        self._elapsed = max(self._elapsed, deadline)
        due: list[VirtualTimer] = []
        while self._timers and self._timers[0][0] <= self._elapsed:
            due.append(heapq.heappop(self._timers)[2])
        for timer in due:
            # An earlier callback of the same instant may have cancelled this one.
            if not timer.cancelled:
                timer.callback()
        return True

    def turn_to(self, moment: datetime) -> None:
        """Set what time it is, as somebody does whose clock was wrong; no timer is nearer for it."""
        self._start = moment - timedelta(seconds=self._elapsed)

    def skip(self, duration: timedelta | float) -> None:
        """Move the hands without firing anything: what a process misses while it is not running."""
        self._elapsed += _seconds(duration)

    async def advance(self, duration: timedelta | float) -> None:
        """Let `duration` pass, timer by timer, giving tasks that do no I/O their turns in between."""
        target = self._elapsed + _seconds(duration)
        await _breathe()
        while (deadline := self.next_deadline) is not None and deadline <= target:
            self.advance_to_next_timer()
            await _breathe()
        self._elapsed = target


def _seconds(duration: timedelta | float) -> float:
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


async def _breathe() -> None:
    for _ in range(_BREATHS):
        await asyncio.sleep(0)
