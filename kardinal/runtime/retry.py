"""Counting consecutive failures per item, so that one bad object waits longer and longer while others do not.

The policy itself, `Backoff`, is a value of the client room; what is added here is the memory: how often a key failed
in a row. A key that succeeds, asks for a time of its own or is gone must be forgotten, or the memory leaks and its
next, unrelated failure waits for minutes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from kardinal.kube import Backoff

__all__ = ["Backoff", "Failures"]

Item = TypeVar("Item", bound=Hashable)


class Failures(Generic[Item]):
    """How often each item failed in a row, and how long it waits therefore."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._counts: dict[Item, int] = {}

    def next_delay(self, item: Item) -> float:
        """Count one more failure of `item` and return its wait in seconds."""
        count = self._counts.get(item, 0)
        self._counts[item] = count + 1
        return self._backoff.delay(count)

    def forget(self, item: Item) -> None:
        """Return the item did well, or is gone: its next failure is its first."""
        self._counts.pop(item, None)

    def __len__(self) -> int:
        return len(self._counts)
