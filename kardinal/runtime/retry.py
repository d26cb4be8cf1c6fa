"""Count consecutive failures per item, so that one failing object waits longer and longer while others do not.

The policy itself is `kardinal.kube.backoff.Backoff`; this module remembers how often a key failed in a row. A key that
succeeds, requests a time of its own or is gone must be forgotten. Otherwise the memory would leak, and the next,
unrelated failure of the key would wait for minutes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from kardinal.kube import Backoff

__all__ = ["Backoff", "Failures"]

Item = TypeVar("Item", bound=Hashable)


class Failures(Generic[Item]):
    """The number of consecutive failures of each item, and the wait that follows from it."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._counts: dict[Item, int] = {}

    def next_delay(self, item: Item) -> float:
        """Count one more failure of `item` and return its wait in seconds."""
        count = self._counts.get(item, 0)
        self._counts[item] = count + 1
        return self._backoff.delay(count)

    def forget(self, item: Item) -> None:
        """Forget the failures of `item`, which has succeeded or is gone; its next failure counts as the first."""
        self._counts.pop(item, None)

    def __len__(self) -> int:
        return len(self._counts)
