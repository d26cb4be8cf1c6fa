"""A line of items per namespace, and the namespaces in turn.

A namespace that has ten thousand items waiting gets as many turns as one that has a single item. Each operation takes
the same time however many there are, but for namespaces that `first` is told to pass over.
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
    """Items in the order in which they are taken."""

    def __init__(self) -> None:
        # Ordered dictionaries rather than deques: an item may leave from anywhere in its line.
        self._lines: OrderedDict[str, OrderedDict[Item, None]] = OrderedDict()
        self._size = 0

    def put(self, item: Item) -> None:
        """Put an item at the end of its namespace's line; a namespace that had none has its turn last."""
        line = self._lines.setdefault(item.namespace, OrderedDict())
        self._size += item not in line
        line[item] = None

    def remove(self, item: Item) -> None:
        """Take an item out, if it is in."""
        line = self._lines.get(item.namespace)
        if line is None or item not in line:
            return
        del line[item]
        self._size -= 1
        if not line:
            del self._lines[item.namespace]

    def first(self, admitted: Callable[[str], bool] = lambda _: True) -> Item | None:
        """Return the next item of the first namespace in turn that is `admitted`."""
        for namespace, line in self._lines.items():
            if admitted(namespace):
                return next(iter(line))
        return None

    def end_turn(self, namespace: str) -> None:
        """Let all other namespaces have their turn first."""
        if namespace in self._lines:
            self._lines.move_to_end(namespace)

    def count(self, namespace: str) -> int:
        """Return how many items of a namespace wait."""
        return len(self._lines.get(namespace, ()))

    def clear(self) -> None:
        self._lines.clear()
        self._size = 0

    def __contains__(self, item: Item) -> bool:
        return item in self._lines.get(item.namespace, ())

    def __len__(self) -> int:
        return self._size
