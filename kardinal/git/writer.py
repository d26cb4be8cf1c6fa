"""The only writer of a branch.

Promotions of one repository often come at the same time and would only race each other. Here they queue: while a push
is under way, the next edits collect, and together they become the next push. Fifty promotions need a handful of pushes
instead of fifty, without a thousand retries.

A caller that is cancelled before its edit was taken leaves no trace. Afterwards the push goes on, and a repeated call
finds the commit by its trailers. Since there may be no repeated call, the log reports such a commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from kardinal.clock import Clock
from kardinal.git.backend import Backend, converge
from kardinal.git.errors import PushRejected
from kardinal.git.history import History
from kardinal.git.landing import PlannedCommit, land_all
from kardinal.git.values import Landed
from kardinal.tree.git_names import TRAILER_STEP

__all__ = ["BranchWriter"]

_Pair = tuple[PlannedCommit, asyncio.Future[Landed]]
"""An edit, and the future of the caller that waits for it."""

_BATCH = 64
"""The most commits of one push."""

log = structlog.get_logger(__name__)


class BranchWriter:
    """Land edits on one branch of one repository, in the order in which they came."""

    def __init__(self, backend: Backend, history: History, branch: str, *, clock: Clock) -> None:
        self._backend = backend
        self._history = history
        self._branch = branch
        self._clock = clock
        self._queue: list[_Pair] = []
        self._task: asyncio.Task[None] | None = None

    async def land(self, planned: PlannedCommit) -> Landed:
        """Return the result of `planned` once it is on the branch."""
        result: asyncio.Future[Landed] = asyncio.get_running_loop().create_future()
        self._queue.append((planned, result))
        if self._task is None:
            self._task = asyncio.create_task(self._drain(), name=f"git writer {self._branch}")
        return await result

    async def close(self) -> None:
        """Let the current push end and cancel the queued edits."""
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

    async def _land(self, batch: Sequence[_Pair]) -> None:
        commits = [planned for planned, _ in batch]
        try:
            outcomes = await converge(
                self._backend, land_all, self._backend, self._history, self._branch, commits, time=self._clock.now()
            )
        except PushRejected as error:
            if len(batch) == 1:
                self._settle(batch[0], error)
                return
            # The repository may refuse one commit only, and the others must not fail with it.
            for pair in batch:
                await self._land([pair])
        except Exception as error:
            for pair in batch:
                self._settle(pair, error)
        else:
            for pair, outcome in zip(batch, outcomes, strict=True):
                self._settle(pair, outcome)

    def _settle(self, pair: _Pair, outcome: Landed | Exception) -> None:
        planned, result = pair
        if not result.done():
            if isinstance(outcome, Exception):
                result.set_exception(outcome)
            else:
                result.set_result(outcome)
        elif isinstance(outcome, Landed) and outcome.changed and not outcome.adopted:
            log.warning(
                "a change has landed for which nobody waits any more",
                promotion=planned.message.trailers.get(TRAILER_STEP),
                repository=self._backend.url.text,
                branch=self._branch,
                commit=outcome.commit,
            )
