"""Everything that a plane holds, as it is committed: a test waits for it without asking the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TypeVar

from kardinal.objects import JsonObject, ResourceType
from kardinal_local.plane import LocalPlane
from kardinal_local.plane.storage.entries import Change
from tests.support.names import TEAM

__all__ = ["Observed"]

Found = TypeVar("Found")

_SECONDS = 40.0
"""Real seconds in which anything happens."""


class Observed:
    """The objects of the team's namespace."""

    def __init__(self, plane: LocalPlane) -> None:
        self._changes: dict[tuple[str, str], Change] = {}
        self._decoded: dict[tuple[str, str], JsonObject] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        plane._store.committed.listen(self._note)

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

    async def until(self, look: Callable[[], Found | None], what: str) -> Found:
        """Return what `look` finds, as soon as it finds anything."""
        try:
            async with asyncio.timeout(_SECONDS):
                while (found := look()) is None:
                    waiting = asyncio.get_running_loop().create_future()
                    self._waiting.add(waiting)
                    await waiting
                return found
        except TimeoutError:
            raise AssertionError(f"waited in vain for {what}") from None

    def _note(self, change: Change) -> None:
        if change.entry.namespace != TEAM:
            return
        key = change.entry.resource, change.entry.name
        self._changes[key] = change
        self._decoded.pop(key, None)
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)
