"""The time left until deadlines in statuses, measured by the monotonic clock.

A deadline in a status is a wall-clock time, so that a restart neither extends nor loses it. But the wall clock may be
corrected by an hour while a promotion waits, and a timeout that fires an hour early may cause a rollback. A process
therefore reads the wall clock once for each deadline, and from then on counts down by the monotonic clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kardinal.clock import Clock
from kardinal.objects import Key
from kardinal.runtime import KeyMemory
from kardinal.runtime.timers import remaining

__all__ = ["Deadlines"]


class Deadlines:
    """The deadlines of the promotions of one process; a promotion may have several, by name."""

    def __init__(self, clock: Clock, memory: KeyMemory) -> None:
        self._clock = clock
        self._ends: dict[Key, dict[str, tuple[datetime, float]]] = memory.map()

    def left(self, key: Key, name: str, moment: datetime, *, at_most: timedelta) -> timedelta:
        """Return the time left until `moment`, between zero and `at_most`, the full length of the deadline."""
        ends = self._ends.setdefault(key, {})
        now = self._clock.monotonic()
        if name not in ends or ends[name][0] != moment:
            left = min(moment - self._clock.now(), at_most)
            ends[name] = (moment, now + left.total_seconds())
        return remaining(ends[name][1] - now)
