"""Run one operation at a time on the branch of a proposal.

An operation on such a branch goes on when its caller is cancelled, because the transfer is on a thread or in a child
process. The next operation on the branch waits for it, so that an operation that removes the branch finds the result of
an earlier one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

__all__ = ["BranchTurns"]

T = TypeVar("T")


class BranchTurns:
    """Run the operations on each branch one after the other, in the order of the requests."""

    def __init__(self) -> None:
        self._last: dict[str, asyncio.Task[object]] = {}
        self._running: set[asyncio.Task[object]] = set()

    async def take(self, branch: str, operation: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `operation` once the earlier ones have ended; it goes on if the caller is cancelled."""
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
        """Return when no operation is running."""
        await asyncio.gather(*self._running, return_exceptions=True)

    def _ended(self, branch: str, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        if self._last.get(branch) is task:
            del self._last[branch]
        if not task.cancelled():
            task.exception()  # the caller has received the error, unless it was cancelled
