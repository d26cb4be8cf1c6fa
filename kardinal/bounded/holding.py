"""The memory for bytes of others that is held at once, by namespace and in all.

A document counts until it is dropped. If a namespace has no room left, its next answer waits for some seconds and is
then given up, because two answers that wait for each other must not do so for ever. A document that is larger than the
share of a namespace is admitted while the namespace holds no other one.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import Counter
from dataclasses import dataclass

from kardinal.objects.errors import KardinalError

__all__ = ["Held", "Holding", "NoRoom"]

ROOM_WITHIN = 10.0
"""The most seconds that an answer waits for room."""


class NoRoom(KardinalError):
    """A namespace holds its full share, and has dropped no document in time."""

    transient = True
    retry_after = 1.0


@dataclass(slots=True, eq=False)
class _Waiting:
    owner: str
    size: int
    turn: asyncio.Future[None]


class Held:
    """Reserved memory, until `release`."""

    def __init__(self, holding: Holding, owner: str, size: int) -> None:
        self._holding = holding
        self._owner = owner
        self._size = size
        self._loop = asyncio.get_running_loop()

    def release(self) -> None:
        """Release the memory; a second call has no effect."""
        size = self._size
        self._size = 0
        if size:
            self._holding._give_back(self._owner, size)

    def release_with(self, thing: object) -> None:
        """Release the memory when `thing` is garbage-collected."""
        weakref.finalize(thing, self._release_on_loop).atexit = False

    def _release_on_loop(self) -> None:
        # The garbage collector runs on any thread that allocates.
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.release)


class Holding:
    """The memory of one program for bytes of others: `share` bytes for each namespace, `total` for all of them."""

    def __init__(self, *, share: int, total: int, patience: float = ROOM_WITHIN) -> None:
        self._share = share
        self._total = total
        self._patience = patience
        self._held: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []

    @property
    def held(self) -> int:
        """Return the bytes that are held by all namespaces."""
        return self._held.total()

    async def take(self, owner: str, size: int) -> Held:
        """Reserve `size` bytes for a namespace; waits for them, and raises `NoRoom` after `ROOM_WITHIN`."""
        size = min(size, self._share)
        waiting = _Waiting(owner, size, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._serve()
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.shield(waiting.turn)
        except BaseException as error:
            if waiting.turn.done():
                self._give_back(owner, size)
            else:
                self._waiting.remove(waiting)
                waiting.turn.cancel()
            if isinstance(error, TimeoutError):
                raise NoRoom("too much is held of answers for this namespace; it is asked again") from None
            raise
        return Held(self, owner, size)

    def _give_back(self, owner: str, size: int) -> None:
        self._held[owner] -= size
        if not self._held[owner]:
            del self._held[owner]
        self._serve()

    def _serve(self) -> None:
        """Serve waiting requests in order; a request that does not fit delays later ones of its namespace."""
        behind: set[str] = set()
        for waiting in list(self._waiting):
            fits = self._held[waiting.owner] + waiting.size <= self._share and self.held + waiting.size <= self._total
            if waiting.owner in behind or not fits:
                behind.add(waiting.owner)
                continue
            self._waiting.remove(waiting)
            self._held[waiting.owner] += waiting.size
            waiting.turn.set_result(None)
