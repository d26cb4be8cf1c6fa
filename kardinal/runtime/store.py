"""Objects of one kind in memory, found by key and through indexes.

The store returns the objects that it holds. They are shared and must not be changed, because a copy per read would cost
more than the reconcile that reads. A changed object replaces the old one.

An index maps an object to any number of values. Empty buckets are removed, because otherwise every value ever seen
would stay in memory. An object for which an index function raises is left out of that index, so that one unusual object
does not end the watch of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

import structlog

from kardinal.objects import JsonObject, Key

__all__ = ["IndexFunction", "Store"]

log = structlog.get_logger(__name__)

IndexFunction = Callable[[JsonObject], Iterable[str]]

NAMESPACE_INDEX = "metadata.namespace"


class Store:
    """A dictionary of objects that maintains its indexes."""

    def __init__(self) -> None:
        self._objects: dict[Key, JsonObject] = {}
        self._indexes: dict[str, _Index] = {}
        self.add_index(NAMESPACE_INDEX, lambda obj: [obj["metadata"].get("namespace", "")])

    def get(self, key: Key) -> JsonObject | None:
        return self._objects.get(key)

    def by_index(self, name: str, value: str, *, limit: int | None = None) -> list[JsonObject]:
        """Return the objects that have `value` in the index `name`; at most the first `limit`."""
        return [self._objects[key] for key in islice(self._indexes[name].keys(value), limit)]

    def filed(self, name: str, value: str) -> Filed:
        """Return the objects of `by_index` lazily, in either direction."""
        return Filed(self._objects, self._indexes[name].keys(value))

    def list(self, namespace: str | None = None) -> list[JsonObject]:
        """Return all objects, or those of one namespace."""
        return list(self._objects.values()) if namespace is None else self.by_index(NAMESPACE_INDEX, namespace)

    def indexed(self, name: str) -> bool:
        """Return whether there is an index of this name."""
        return name in self._indexes

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Index present and future objects by the values of `function`."""
        if name in self._indexes:
            raise ValueError(f"there is an index {name!r} already")
        index = self._indexes[name] = _Index(function)
        for key, obj in self._objects.items():
            index.put(key, obj)

    def put(self, key: Key, obj: JsonObject) -> None:
        self._objects[key] = obj
        for index in self._indexes.values():
            index.put(key, obj)

    def remove(self, key: Key) -> JsonObject | None:
        removed = self._objects.pop(key, None)
        if removed is not None:
            for index in self._indexes.values():
                index.remove(key)
        return removed

    def replace(self, objects: Mapping[Key, JsonObject]) -> None:
        """Make `objects` the whole content."""
        for key in [key for key in self._objects if key not in objects]:
            self.remove(key)
        for key, obj in objects.items():
            if self._objects.get(key) is not obj:
                self.put(key, obj)

    def items(self) -> Iterable[tuple[Key, JsonObject]]:
        return self._objects.items()

    def __len__(self) -> int:
        return len(self._objects)


class Filed:
    """The objects with one value in an index, in the order in which they were added.

    They are looked up during the iteration, so nothing may be awaited meanwhile.
    """

    def __init__(self, objects: Mapping[Key, JsonObject], keys: dict[Key, None]) -> None:
        self._objects = objects
        self._keys = keys

    def __iter__(self) -> Iterator[JsonObject]:
        return map(self._objects.__getitem__, self._keys)

    def __reversed__(self) -> Iterator[JsonObject]:
        return map(self._objects.__getitem__, reversed(self._keys))


class _Index:
    """One index: from values to keys, and back, so that an object can be removed without its old state."""

    def __init__(self, function: IndexFunction) -> None:
        self._function = function
        # Dictionaries instead of sets, so that a listing keeps the order in which objects arrived.
        self._buckets: dict[str, dict[Key, None]] = {}
        self._values: dict[Key, tuple[str, ...]] = {}

    def keys(self, value: str) -> dict[Key, None]:
        return self._buckets.get(value, {})

    def put(self, key: Key, obj: JsonObject) -> None:
        values = self._values_of(key, obj)
        if self._values.get(key, ()) == values:
            return
        self.remove(key)
        if not values:
            return
        self._values[key] = values
        for value in values:
            self._buckets.setdefault(value, {})[key] = None

    def _values_of(self, key: Key, obj: JsonObject) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(self._function(obj)))
        except Exception as error:
            log.error("an index function failed", object=str(key), exc_info=error)
            return ()

    def remove(self, key: Key) -> None:
        for value in self._values.pop(key, ()):
            bucket = self._buckets[value]
            del bucket[key]
            if not bucket:
                del self._buckets[value]
