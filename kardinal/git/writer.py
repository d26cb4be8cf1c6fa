"""The one writer of a branch.

Promotions of one repository come in crowds and would only race each other. Here they queue: while a push is under
way the next edits gather, and together they become the next push. A crowd of fifty needs a handful of pushes
instead of fifty with more than a thousand retries.

A caller that gives up before its edit was taken leaves no trace. Afterwards the push goes on, and asking again
finds the commit by its trailers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kardinal.git.backend import Backend, converge
from kardinal.git.errors import PushRejected
from kardinal.git.history import History
from kardinal.git.landing import PlannedCommit, land_all
from kardinal.git.values import Landed
from kardinal.runtime.clock import Clock

__all__ = ["BranchWriter"]

_BATCH = 64
"""Commits of one push."""


class BranchWriter:
    """Lands edits on one branch of one repository, in the sequence they came."""

    def __init__(self, backend: Backend, history: History, branch: str, *, clock: Clock) -> None:
        self._backend = backend
        self._history = history
        self._branch = branch
        self._clock = clock
        self._queue: list[tuple[PlannedCommit, asyncio.Future[Landed]]] = []
        self._task: asyncio.Task[None] | None = None

    async def land(self, planned: PlannedCommit) -> Landed:
        """Return the result of `planned` once it is on the branch."""
        result: asyncio.Future[Landed] = asyncio.get_running_loop().create_future()
        self._queue.append((planned, result))
        if self._task is None:
            self._task = asyncio.create_task(self._drain(), name=f"git writer {self._branch}")
        return await result

    async def close(self) -> None:
        """Let the push under way end and refuse what is queued."""
        for _, result in self._queue:
            result.cancel()
        if self._task is not None:
            await self._task

    async def _drain(self) -> None:
        try:
            while self._queue:
                batch = [pair for pair in self._queue[:_BATCH] if not pair[1].done()]
                del self._queue[:_BATCH]
                if batch:
                    await self._land(batch)
        finally:
            self._task = None

    async def _land(self, batch: Sequence[tuple[PlannedCommit, asyncio.Future[Landed]]]) -> None:
        commits = [planned for planned, _ in batch]
        try:
            outcomes = await converge(
                self._backend, land_all, self._backend, self._history, self._branch, commits, time=self._clock.now()
            )
        except PushRejected as error:
            if len(batch) == 1:
                _settle(batch[0][1], error)
                return
            # The repository may object to one commit only: the others must not fail with it.
            for pair in batch:
                await self._land([pair])
        except Exception as error:
            for _, result in batch:
                _settle(result, error)
        else:
            for (_, result), outcome in zip(batch, outcomes, strict=True):
                _settle(result, outcome)


def _settle(result: asyncio.Future[Landed], outcome: Landed | Exception) -> None:
    if result.done():
        return
    if isinstance(outcome, Exception):
        result.set_exception(outcome)
    else:
        result.set_result(outcome)
