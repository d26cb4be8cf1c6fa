"""The age of what this program first saw a moment ago, such as a pull request.

Hosts may answer 404 for some seconds after a pull request was made. Nothing in that answer tells a new number from a
wrong one, so a number counts as new for a while after it was opened, or first asked for by this program.
"""

from __future__ import annotations

from collections import OrderedDict

from kardinal.runtime.clock import Clock

__all__ = ["NEW_SECONDS", "FirstSeen"]

NEW_SECONDS = 60.0
MAX_ENTRIES = 10_000


class FirstSeen:
    """The moments at which things were first seen; the oldest are forgotten beyond `MAX_ENTRIES`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: OrderedDict[str, float] = OrderedDict()

    def age(self, name: str) -> float:
        """Return the seconds since `name` was first asked about, 0 for the first time."""
        now = self._clock.monotonic()
        moment = self._moments.setdefault(name, now)
        while len(self._moments) > MAX_ENTRIES:
            self._moments.popitem(last=False)
        return now - moment
