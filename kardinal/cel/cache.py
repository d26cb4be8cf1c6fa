"""A cache by the texts of expressions, bounded by the characters of the texts.

A count of entries would not bound the memory: an expression has 20 characters or 4,096, and its program grows with it.
The most recently used entries are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["SourceCache"]

Made = TypeVar("Made")


class SourceCache(Generic[Made]):
    """The most recently used values by text and variant, such as a library; threads may share the cache."""

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
        """Keep `made`; the least recently used entries make room for it."""
        with self._lock:
            if (source, variant) not in self._entries:
                self._size += len(source)
            self._entries[source, variant] = made
            while self._size > self._limit and len(self._entries) > 1:
                (oldest, _), _ = self._entries.popitem(last=False)
                self._size -= len(oldest)
