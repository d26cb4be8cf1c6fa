"""Time that moves only when a test says so, and time as it passes.

A test of an hour must not take an hour, and must not depend on how busy the machine is. `VirtualClock` keeps its timers
in a heap and fires them when the test advances it; between two advances no time passes at all. The trap: network and
threads live in real time, so a test that talks to a server must let it come to rest before it advances (see `settle`).

Beside a real server, whose time no test moves, programs run on `RealClock`: what they stamp and what the server stamps
is then the same time. A test that lives with either asks both for the same: `go_on`.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from kardinal.clock import SystemClock
from tests.support.target import Target

__all__ = ["RealClock", "VirtualClock", "VirtualTimer", "WorldClock"]

TUESDAY_MORNING = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)

_MOMENT_SECONDS = 0.01
_PATIENCE = timedelta(seconds=40)
_IN_VAIN = timedelta(seconds=2)
"""Longer than anything is put off that is written soon."""

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
    """A `kardinal.clock.Clock` that a test moves."""

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
        """Set what time it is, as on a machine whose clock was wrong; no timer is nearer for it."""
        self._start = moment - timedelta(seconds=self._elapsed)

    def skip(self, duration: timedelta | float) -> None:
        """Let time pass without firing anything: what a process misses while it is not running."""
        self._elapsed += _seconds(duration)

    def patience(self, within: timedelta) -> timedelta:
        """How long a test waits for what should happen `within` some time: no longer than that."""
        return within

    async def go_on(self, until: float) -> bool:
        """Move to the next timer; False when none is due by then."""
        deadline = self.next_deadline
        return deadline is not None and deadline <= until and self.advance_to_next_timer()

    def at_most(self, duration: timedelta) -> timedelta:
        """How much of `duration` a test can let pass in vain: all of it."""
        return duration

    def pending(self) -> list[str]:
        """Return the next timers, a line each."""
        return [f"in {timer.deadline - self._elapsed:.1f} s: {timer}" for timer in self.timers[:10]]

    async def advance(self, duration: timedelta | float) -> None:
        """Let `duration` pass, timer by timer, giving tasks that do no I/O their turns in between."""
        target = self._elapsed + _seconds(duration)
        await _breathe()
        while (deadline := self.next_deadline) is not None and deadline <= target:
            self.advance_to_next_timer()
            await _breathe()
        self._elapsed = target


class RealClock(SystemClock):
    """The clock of the machine, for a test that waits."""

    def patience(self, within: timedelta) -> timedelta:
        """Return how long a test waits for what should happen `within` some time.

        A second may take longer on a busy machine, and an hour is never waited for.
        """
        return _PATIENCE

    async def go_on(self, until: float) -> bool:
        """Let a moment pass; False when the time is over."""
        await asyncio.sleep(_MOMENT_SECONDS)
        return self.monotonic() <= until

    def at_most(self, duration: timedelta) -> timedelta:
        """How much of `duration` a test can let pass in vain."""
        return min(duration, _IN_VAIN)

    def pending(self) -> list[str]:
        return ["as time passes"]


WorldClock = VirtualClock | RealClock


def _seconds(duration: timedelta | float) -> float:
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


async def _breathe() -> None:
    for _ in range(_BREATHS):
        await asyncio.sleep(0)


@pytest.fixture
def clock(request: pytest.FixtureRequest, target: Target) -> WorldClock:
    """Return the time of this test: a Tuesday morning until it is advanced; beside a real server, the machine's."""
    if target is Target.ASSETS and request.node.get_closest_marker("virtual_time") is None:
        return RealClock()
    return VirtualClock()
