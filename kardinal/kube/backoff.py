"""How long to wait before trying again: the one policy object of the whole project.

A `Backoff` is a value. It knows nothing of what failed and keeps no count: the caller owns the number of consecutive
failures, so that one policy serves a thousand keys. Jitter only lengthens a wait: a cap of 30 s with jitter 1.0 means
between 30 and 60 s, which keeps a fleet of clients from returning in step.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits of `base`, `base * factor`, ... seconds, at most `cap`, each lengthened by up to `jitter` of itself."""

    base: float
    cap: float
    factor: float = 2.0
    jitter: float = 0.0
    rng: random.Random = field(default_factory=random.Random, repr=False, compare=False)

    def delay(self, failures: int) -> float:
        """Return the wait after `failures` failures in a row, the first being 0."""
        try:
            grown = self.base * self.factor**failures
        except OverflowError:
            grown = self.cap
        return min(grown, self.cap) * (1.0 + self.jitter * self.rng.random())
