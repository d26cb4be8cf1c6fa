"""The wait before a retry, as the one policy class of the whole project.

A `Backoff` is a value without state: the caller counts the consecutive failures, so one policy serves a thousand keys.
Jitter only lengthens a wait: a cap of 30 s with jitter 1.0 means between 30 and 60 s, so that a fleet of clients does
not return at the same time.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits of `base`, `base * factor`, ... seconds, at most `cap`, each lengthened by up to `jitter` times itself."""

    base: float
    cap: float
    factor: float = 2.0
    jitter: float = 0.0
    rng: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def delay(self, failures: int) -> float:
        """Return the wait in seconds after `failures` earlier failures in a row; 0 for the first failure."""
        try:
            grown = self.base * self.factor**failures
        except OverflowError:
            grown = self.cap
        return min(grown, self.cap) * (1.0 + self.jitter * self.rng.random())
