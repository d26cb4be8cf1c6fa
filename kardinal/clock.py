"""Time as a dependency.

Every decision that depends on time (queue delays, gate re-evaluation, step timeouts, polls, stamps in status) reads it
from a `Clock` that is passed in, so that a test can let hours pass at once. Timeouts of the network (HTTP deadlines,
TLS, watch timeouts) use real time instead.

Intervals are measured with `monotonic`, stamps are written from `now`: a wall clock that jumps must not fire or lose
a timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock", "Timer"]


class Timer(Protocol):
    """A pending call that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The source of time and timers."""

    def now(self) -> datetime:
        """Return the wall clock, timezone-aware UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point, never going back."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the event loop after `delay` seconds."""
        ...

    async def sleep(self, delay: float) -> None:
        """Suspend the calling task for `delay` seconds."""
        ...


class SystemClock:
    """The clock of the machine and of the running event loop."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(delay)
