"""The time since this program first saw an object, such as a pull request.

Hosts may answer 404 for some seconds after a pull request was created. The answer does not distinguish a new number
from a wrong one, so a number counts as new for a while after it was opened, or first requested by this program.
"""

from __future__ import annotations

from collections import OrderedDict

from kardinal.clock import Clock

__all__ = ["NEW_SECONDS", "FirstSeen"]

NEW_SECONDS = 60.0
MAX_ENTRIES = 10_000


class FirstSeen:
    """The times at which this program first asked about objects; beyond `MAX_ENTRIES` the oldest are forgotten."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: OrderedDict[str, float] = OrderedDict()

    def age(self, name: str) -> float:
        """Return the seconds since `name` was first asked about; 0 for the first time."""
        now = self._clock.monotonic()
        moment = self._moments.setdefault(name, now)
        while len(self._moments) > MAX_ENTRIES:
            self._moments.popitem(last=False)
        return now - moment
