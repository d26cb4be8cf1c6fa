"""Everything that a plane holds, as it is committed: a test waits for it without asking the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeVar

from kardinal.objects import JsonObject, ResourceType
from kardinal_local.plane import LocalPlane
from kardinal_local.plane.storage.entries import Change

__all__ = ["Observed", "observe"]

Found = TypeVar("Found")

_SECONDS = 90.0
"""Real seconds in which anything happens."""


class Observed:
    """The objects of one namespace."""

    def __init__(self) -> None:
        self._changes: dict[tuple[str, str], Change] = {}
        self._decoded: dict[tuple[str, str], JsonObject] = {}
        self._waiting: set[asyncio.Future[None]] = set()

    def get(self, resource: ResourceType, name: str) -> JsonObject | None:
        """Return an object as it is now; None where there is none."""
        key = f"{resource.plural}.{resource.group}", name
        change = self._changes.get(key)
        if change is None or change.type == "DELETED":
            return None
        if key not in self._decoded:
            self._decoded[key] = change.entry.decode()
        return self._decoded[key]

    def all(self, resource: ResourceType) -> Iterator[JsonObject]:
        """Yield the objects of a kind."""
        for plural, name in list(self._changes):
            if plural == f"{resource.plural}.{resource.group}" and (found := self.get(resource, name)) is not None:
                yield found

    async def until(
        self,
        look: Callable[[], Found | None],
        what: str,
        *,
        show: Callable[[], object] = lambda: "",
        seconds: float = _SECONDS,
    ) -> Found:
        """Return what `look` finds, as soon as it finds anything; `show` tells what there is where that never comes."""
        try:
            async with asyncio.timeout(seconds):
                while (found := look()) is None:
                    waiting = asyncio.get_running_loop().create_future()
                    self._waiting.add(waiting)
                    await waiting
                return found
        except TimeoutError:
            raise AssertionError(f"waited in vain for {what}: {show()}") from None

    def note(self, change: Change) -> None:
        """Take over a change of an object."""
        key = change.entry.resource, change.entry.name
        self._changes[key] = change
        self._decoded.pop(key, None)
        waiting = self._waiting
        self._waiting = set()
        for each in waiting:
            if not each.done():
                each.set_result(None)


def observe(plane: LocalPlane) -> Callable[[str], Observed]:
    """Begin to observe a plane; return what gives the objects of a namespace."""
    namespaces: dict[str, Observed] = {}

    def of(namespace: str) -> Observed:
        return namespaces.setdefault(namespace, Observed())

    def note(change: Change) -> None:
        if change.entry.namespace is not None:
            of(change.entry.namespace).note(change)

    plane._store.committed.listen(note)
    return of
