"""The memory of the components of a controller about its objects, by key, which is dropped in one place.

    steps = KeyMemory(manager.informer(STEP))
    self._failures: dict[Key, int] = steps.map()

A component registers its maps and sets, and no other code needs to know them: the controller that is given the memory
drops a key from all of them after a run for the key, if its object is gone. A component can also drop the key of an
object that still exists but has ended. The memory may be lost at any time: it is empty after a start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kardinal.objects import JsonObject, Key

__all__ = ["KeyMemory"]


class _Objects(Protocol):
    """The cache of the objects that the memory is about, such as an informer."""

    def get(self, namespace: str, name: str) -> JsonObject | None: ...


class KeyMemory:
    """The memory of the components of one controller about the objects of one kind."""

    def __init__(self, objects: _Objects) -> None:
        self._objects = objects
        self._maps: list[dict[Key, Any]] = []
        self._sets: list[set[Key]] = []
        self._listeners: list[Callable[[Key], None]] = []

    def map(self) -> dict[Key, Any]:
        """Return an empty dict whose entry of a key is removed when the key is dropped."""
        found: dict[Key, Any] = {}
        self._maps.append(found)
        return found

    def set(self) -> set[Key]:
        """Return an empty set from which a key is removed when it is dropped."""
        found: set[Key] = set()
        self._sets.append(found)
        return found

    def on_drop(self, forget: Callable[[Key], None]) -> None:
        """Call `forget` with each key that is dropped, for example to close a watch for it."""
        self._listeners.append(forget)

    def part(self) -> KeyMemory:
        """Return a memory from which a key is dropped together with this one, and also by itself."""
        found = KeyMemory(self._objects)
        self._listeners.append(found.drop)
        return found

    def drop(self, key: Key) -> None:
        """Remove a key from the memory of all components."""
        for entries in self._maps:
            entries.pop(key, None)
        for keys in self._sets:
            keys.discard(key)
        for forget in self._listeners:
            forget(key)

    def drop_if_gone(self, key: Key) -> None:
        """Remove a key from the memory of all components if its object does not exist any more."""
        if self._objects.get(*key) is None:
            self.drop(key)
