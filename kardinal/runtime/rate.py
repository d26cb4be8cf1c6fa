"""Rate limits: a maximum number of admissions of a key in a period of time."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from math import ceil

from kardinal.clock import Clock

__all__ = ["RateLimit"]

KEYS = 4096
"""The number of keys that are remembered; beyond it, the least recently admitted key is forgotten."""


class RateLimit:
    """At most `limit` admissions per key in any `window` seconds.

    Time and memory are limited for any number of keys: each call looks at its own key and at the oldest ones.
    """

    def __init__(self, *, limit: int, window: float, clock: Clock, keys: int = KEYS) -> None:
        self._limit = limit
        self._window = window
        self._clock = clock
        self._keys = keys
        self._admitted: OrderedDict[Hashable, deque[float]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of keys that are remembered."""
        return len(self._admitted)

    def admit(self, key: Hashable) -> int:
        """Return 0 if admitted, and otherwise the whole seconds until the next admission is possible."""
        now = self._clock.monotonic()
        self._forget(now)
        times = self._admitted.setdefault(key, deque())
        while times and times[0] + self._window <= now:
            times.popleft()
        if len(times) >= self._limit:
            return ceil(times[0] + self._window - now)
        times.append(now)
        self._admitted.move_to_end(key)
        return 0

    def _forget(self, now: float) -> None:
        """Forget keys without recent admissions, oldest first, and the oldest keys if there are too many."""
        while self._admitted:
            oldest = next(iter(self._admitted.values()))
            if len(self._admitted) < self._keys and oldest[-1] + self._window > now:
                return
            self._admitted.popitem(last=False)
