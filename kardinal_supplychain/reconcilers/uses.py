"""Index what each owner depends on, so that a change wakes the owners that it concerns and no other."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Set
from typing import Generic, TypeVar

from kardinal.objects import Key
from kardinal.runtime import KeyMemory

__all__ = ["Uses"]

Thing = TypeVar("Thing", bound=Hashable)


class Uses(Generic[Thing]):
    """The things that owners use, in both directions; an owner that is gone uses nothing."""

    def __init__(self, memory: KeyMemory) -> None:
        self._things: dict[Key, frozenset[Thing]] = {}
        self._users: dict[Thing, set[Key]] = {}
        memory.on_drop(self._forget)

    def note(self, owner: Key, things: Collection[Thing]) -> None:
        """Replace what an owner uses."""
        now = frozenset(things)
        before = self._things.get(owner, frozenset())
        for thing in before - now:
            users = self._users[thing]
            users.discard(owner)
            if not users:
                del self._users[thing]
        for thing in now - before:
            self._users.setdefault(thing, set()).add(owner)
        if now:
            self._things[owner] = now
        else:
            self._things.pop(owner, None)

    def add(self, owner: Key, thing: Thing) -> None:
        """Note one more thing that an owner uses."""
        self.note(owner, self.of(owner) | {thing})

    def of(self, owner: Key) -> frozenset[Thing]:
        """Return what an owner uses."""
        return self._things.get(owner, frozenset())

    def users(self, thing: Thing) -> Set[Key]:
        """Return the owners that use a thing."""
        return frozenset(self._users.get(thing, ()))

    @property
    def used(self) -> Collection[Thing]:
        """All things that an owner uses."""
        return self._users.keys()

    def _forget(self, owner: Key) -> None:
        self.note(owner, ())
