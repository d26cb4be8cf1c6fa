"""A clock for real processes, whose timers no test can move.

Programs that are killed by the system cannot live on a clock that the test moves. Theirs runs `SPEED` times as fast as
the machine's unless told otherwise, and processes with one origin have one time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.support.clock import TUESDAY_MORNING

__all__ = ["SPEED", "FastClock"]

SPEED = 20.0


@dataclass(frozen=True)
class FastClock:
    """A `kardinal.clock.Clock`; `origin` is the machine's monotonic time at its beginning."""

    origin: float
    speed: float = SPEED

    @classmethod
    def start(cls, *, speed: float = SPEED) -> FastClock:
        return cls(time.monotonic(), speed)

    def now(self) -> datetime:
        return TUESDAY_MORNING + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return (time.monotonic() - self.origin) * self.speed

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(max(delay, 0.0) / self.speed, callback)

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(max(delay, 0.0) / self.speed)
