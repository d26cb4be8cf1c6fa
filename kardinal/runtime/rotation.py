"""A line of items per namespace; the namespaces take turns.

A namespace with ten thousand items gets as many turns as a namespace with one. Each operation takes constant time,
except that `first` skips the namespaces that are not admitted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

__all__ = ["Rotation"]


class Namespaced(Hashable, Protocol):
    """An item that belongs to a namespace."""

    @property
    def namespace(self) -> str: ...


Item = TypeVar("Item", bound=Namespaced)


class Rotation(Generic[Item]):
    """Items in the order in which they are handed out."""

    def __init__(self) -> None:
        # Ordered dictionaries instead of deques, because an item may leave from any place in its line.
        self._lines: OrderedDict[str, OrderedDict[Item, None]] = OrderedDict()
        self._size = 0

    def put(self, item: Item) -> None:
        """Put an item at the end of its namespace's line; a namespace without items gets the last turn."""
        line = self._lines.setdefault(item.namespace, OrderedDict())
        self._size += item not in line
        line[item] = None

    def remove(self, item: Item) -> None:
        """Remove an item, if it is present."""
        line = self._lines.get(item.namespace)
        if line is None or item not in line:
            return
        del line[item]
        self._size -= 1
        if not line:
            del self._lines[item.namespace]

    def first(self, admitted: Callable[[str], bool] = lambda _: True) -> Item | None:
        """Return the first item of the first namespace in turn that is `admitted`."""
        for namespace, line in self._lines.items():
            if admitted(namespace):
                return next(iter(line))
        return None

    def end_turn(self, namespace: str) -> None:
        """Move a namespace to the end: all others have their turn before its next one."""
        if namespace in self._lines:
            self._lines.move_to_end(namespace)

    def count(self, namespace: str) -> int:
        """Return the number of waiting items of a namespace."""
        return len(self._lines.get(namespace, ()))

    def clear(self) -> None:
        self._lines.clear()
        self._size = 0

    def __contains__(self, item: Item) -> bool:
        return item in self._lines.get(item.namespace, ())

    def __len__(self) -> int:
        return self._size
