"""The rate limit of posts per Pipeline."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from math import ceil

from kardinal.runtime.clock import Clock

__all__ = ["RateLimit"]


class RateLimit:
    """At most `limit` admissions per key in any `window` seconds; keys that fall silent are forgotten."""

    def __init__(self, *, limit: int, window: float, clock: Clock) -> None:
        self._limit = limit
        self._window = window
        self._clock = clock
        self._admitted: dict[Hashable, deque[float]] = {}

    def admit(self, key: Hashable) -> int:
        """0 when admitted, else the whole seconds until the next admission is possible."""
        now = self._clock.monotonic()
        self._forget(now)
        times = self._admitted.setdefault(key, deque())
        if len(times) >= self._limit:
            return ceil(times[0] + self._window - now)
        times.append(now)
        return 0

    def _forget(self, now: float) -> None:
        for key, times in list(self._admitted.items()):
            while times and times[0] + self._window <= now:
                times.popleft()
            if not times:
                del self._admitted[key]
