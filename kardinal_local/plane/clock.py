"""The clock of the plane: the time it stamps on objects, and the timers of its housekeeping.

The plane reads time from a `Clock` that is passed in, so that a test controls when an Event expires or a token ends.
Deadlines of the network and the lifetime of certificates use the time of the machine.
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
    """The source of time of one plane."""

    def now(self) -> datetime:
        """Return the wall clock time, timezone-aware UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed point, never going back."""
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
