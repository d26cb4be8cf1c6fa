"""Threads for Git, which blocks: it runs in a pool of limited size (`kardinal.processes.threads` enforces this).

Network transfers have threads of their own. They wait for a remote host and not for this machine, so a few stalled
remotes must not delay operations on local repositories or other remotes. Each host and each namespace has a share of
these threads (`shares`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import ParamSpec, TypeVar

from kardinal.git.shares import Lane, Shares

__all__ = ["GitRunner"]

P = ParamSpec("P")
T = TypeVar("T")

_TRANSFERS = 16
"""The most concurrent network transfers; each has a thread that mostly waits."""


class GitRunner:
    """A pool of threads for work on repositories, and another pool for transfers."""

    def __init__(self, workers: int = 4) -> None:
        self._work = ThreadPoolExecutor(workers, thread_name_prefix="git")
        self._transfers = ThreadPoolExecutor(_TRANSFERS, thread_name_prefix="git-transfer")
        self._shares = Shares(_TRANSFERS)
        self._busy: set[Future[object]] = set()

    @property
    def busy(self) -> int:
        """The number of jobs accepted and not yet finished, including those whose caller was cancelled."""
        return len(self._busy) + self._shares.waiting

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of `function`, computed on a thread of the pool."""
        return await self._result(self._work.submit(function, *args, **kwargs))

    async def run_transfer(self, lane: Lane, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same as `run` for network transfers, once a thread in the share of `lane` is free."""
        await self._shares.acquire(lane)
        loop = asyncio.get_running_loop()

        def give_back(_: object) -> None:
            # Called on a thread, possibly after the event loop has ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._shares.give_back, lane)

        try:
            job = self._transfers.submit(function, *args, **kwargs)
        except RuntimeError:
            self._shares.give_back(lane)
            raise
        # If the caller is cancelled, the thread goes on working, and its share stays in use.
        job.add_done_callback(give_back)
        return await self._result(job)

    def close(self) -> None:
        """Accept no more jobs and drop those not begun; threads end with their current job."""
        self._work.shutdown(wait=False, cancel_futures=True)
        self._transfers.shutdown(wait=False, cancel_futures=True)

    async def _result(self, job: Future[T]) -> T:
        # Counted by the future of the thread, because the thread goes on working if the caller is cancelled.
        self._busy.add(job)  # type: ignore[arg-type]
        job.add_done_callback(self._busy.discard)
        return await asyncio.wrap_future(job)
