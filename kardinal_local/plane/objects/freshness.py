"""Wait for a revision that has not been written yet.

A client that was told of a revision may ask for a state that is at least as new. On one server there is nothing newer
than now, so it waits for what may still be written, in vain mostly: then it hears 504, and tries another server. The
time is the network's, not the clock's of the plane.
"""

from __future__ import annotations

import asyncio

from kardinal_local.plane.objects.revisions import revision_too_large
from kardinal_local.plane.storage import Change, Committed

__all__ = ["Freshness"]

PATIENCE_SECONDS = 3.0


class Freshness:
    """Knows when what is committed has reached a revision."""

    def __init__(self, store: Committed) -> None:
        self._store = store
        self._waiting: set[asyncio.Event] = set()
        store.listen(self._wake)

    async def reach(self, revision: int) -> None:
        """Return once `revision` is committed; 504 when it does not come."""
        if revision <= self._store.revision:
            return
        moved = asyncio.Event()
        self._waiting.add(moved)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while revision > self._store.revision:
                    moved.clear()
                    await moved.wait()
        except TimeoutError:
            raise revision_too_large(revision, current=self._store.revision) from None
        finally:
            self._waiting.discard(moved)

    def _wake(self, _: Change) -> None:
        for moved in self._waiting:
            moved.set()
