"""A cache by the texts of expressions, bounded by the characters of the texts.

A count of entries would bound nothing: an expression is 20 characters long or 4,096, and what is made of it grows with
it. The entries that were used last are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["SourceCache"]

Made = TypeVar("Made")


class SourceCache(Generic[Made]):
    """The latest values by text and by what else they depend on; threads may share it."""

    def __init__(self, *, characters: int) -> None:
        self._limit = characters
        self._size = 0
        self._entries: OrderedDict[tuple[str, Hashable], Made] = OrderedDict()
        self._lock = Lock()

    def get(self, source: str, variant: Hashable = None) -> Made | None:
        with self._lock:
            found = self._entries.get((source, variant))
            if found is not None:
                self._entries.move_to_end((source, variant))
            return found

    def put(self, source: str, made: Made, variant: Hashable = None) -> None:
        """Keep `made`, at the cost of those that were used least lately."""
        with self._lock:
            if (source, variant) not in self._entries:
                self._size += len(source)
            self._entries[source, variant] = made
            while self._size > self._limit and len(self._entries) > 1:
                (oldest, _), _ = self._entries.popitem(last=False)
                self._size -= len(oldest)
