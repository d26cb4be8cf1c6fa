"""One operation at a time on the branch of a proposal.

What moves such a branch goes on when its caller gives up: the transfer is on a thread, or in a child. The next
operation on the branch waits for it, so that one that removes the branch finds what an earlier one has made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

__all__ = ["BranchTurns"]

T = TypeVar("T")


class BranchTurns:
    """Runs operations on each branch one after the other, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Task[object]] = {}
        self._running: set[asyncio.Task[object]] = set()

    async def take(self, branch: str, operation: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `operation` once those before it have ended; it goes on if the caller is cancelled."""
        before = self._last.get(branch)

        async def run() -> T:
            if before is not None:
                await asyncio.wait((before,))
            return await operation()

        task = asyncio.create_task(run(), name=f"git branch {branch}")
        self._last[branch] = task
        self._running.add(task)
        task.add_done_callback(lambda done: self._ended(branch, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Return when nothing is under way."""
        await asyncio.gather(*self._running, return_exceptions=True)

    def _ended(self, branch: str, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        if self._last.get(branch) is task:
            del self._last[branch]
        if not task.cancelled():
            task.exception()  # the caller has been told, unless it has given up
