"""A clock for real processes, whose timers no test can move.

Programs that are killed by the system cannot live on a clock that the test moves. Theirs runs `SPEED` times as fast as
the machine's, and processes with one origin have one time.
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
    """A `kardinal.runtime.clock.Clock`; `origin` is the machine's monotonic time at its beginning."""

    origin: float

    @classmethod
    def start(cls) -> FastClock:
        return cls(time.monotonic())

    def now(self) -> datetime:
        return TUESDAY_MORNING + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return (time.monotonic() - self.origin) * SPEED

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(max(delay, 0.0) / SPEED, callback)

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(max(delay, 0.0) / SPEED)
