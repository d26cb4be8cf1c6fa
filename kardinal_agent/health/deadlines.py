"""The time that is left until moments that stand in statuses, by a clock that cannot be set.

Such a moment is a time of the machine's clock, so that a restart neither renews nor forgets it. But that clock may be
put right by an hour while a promotion waits, and a rollback may follow a timeout that has not come. So it is read once:
the first look of a process says how much time is left, and from then on the time that passes counts.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kardinal.objects import Key
from kardinal.runtime import Clock

__all__ = ["Deadlines"]

_INSTANT = 0.001
"""Seconds below which a timer has fired: sums of floats do not meet exactly."""


class Deadlines:
    """The deadlines of the promotions of one process, each with a name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends: dict[Key, dict[str, tuple[datetime, float]]] = {}

    def left(self, key: Key, name: str, moment: datetime, *, at_most: timedelta) -> timedelta:
        """Return how much time is left until a moment that was `at_most` away when it was noted; nothing when over."""
        ends, now = self._ends.setdefault(key, {}), self._clock.monotonic()
        if name not in ends or ends[name][0] != moment:
            left = min(moment - self._clock.now(), at_most)
            ends[name] = (moment, now + left.total_seconds())
        seconds = ends[name][1] - now
        return timedelta(seconds=seconds) if seconds > _INSTANT else timedelta()

    def forget(self, key: Key) -> None:
        """Forget a promotion whose health is not looked at any more."""
        self._ends.pop(key, None)
