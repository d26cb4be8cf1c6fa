"""Threads for Git, and the guard that keeps Git off the event loop.

libgit2 and file I/O block. One clone on the event loop would stop every watch, queue and probe of the process, so
this work runs in a bounded pool, and `off_loop` makes a function raise when it is called on a thread with a running
loop instead of quietly being slow there.

Network transfers have threads of their own. They wait for a peer and not for this machine, and a few stalled
remotes must not keep local repositories, or the other remotes, from being served. Each host and each namespace has a
share of them (`shares`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from typing import ParamSpec, TypeVar

from kardinal.git.shares import Lane, Shares

__all__ = ["BlockingCallOnLoop", "GitRunner", "off_loop"]

P = ParamSpec("P")
T = TypeVar("T")

_TRANSFERS = 16
"""Network transfers under way at once; each is a thread that mostly waits."""


class BlockingCallOnLoop(RuntimeError):
    """A function that blocks was called where it would stop the event loop."""


def off_loop(function: Callable[P, T]) -> Callable[P, T]:
    """Make `function` raise on a thread whose event loop is running."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            blocked = False
        else:
            blocked = True
        if blocked:
            raise BlockingCallOnLoop(f"{function.__qualname__} blocks; run it through GitRunner")
        return function(*args, **kwargs)

    return guarded


class GitRunner:
    """A bounded pool of threads for work on repositories, and another one for transfers."""

    def __init__(self, workers: int = 4) -> None:
        self._work = ThreadPoolExecutor(workers, thread_name_prefix="git")
        self._transfers = ThreadPoolExecutor(_TRANSFERS, thread_name_prefix="git-transfer")
        self._shares = Shares(_TRANSFERS)
        self._busy: set[Future[object]] = set()

    @property
    def busy(self) -> int:
        """Jobs accepted and not yet finished, including those whose caller has given up."""
        return len(self._busy) + self._shares.waiting

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of `function`, computed on a thread of the pool."""
        return await self._result(self._work.submit(function, *args, **kwargs))

    async def run_transfer(self, lane: Lane, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `run`, for functions that wait for the network, once there is a thread in the share of `lane`."""
        await self._shares.acquire(lane)
        loop = asyncio.get_running_loop()

        def give_back(_: object) -> None:
            # On a thread, and maybe after the loop has ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._shares.give_back, lane)

        try:
            job = self._transfers.submit(function, *args, **kwargs)
        except RuntimeError:
            self._shares.give_back(lane)
            raise
        # A cancelled caller leaves the thread at work, and the share in use.
        job.add_done_callback(give_back)
        return await self._result(job)

    def close(self) -> None:
        """Take no more jobs and drop those not begun; threads end with the job they are in."""
        self._work.shutdown(wait=False, cancel_futures=True)
        self._transfers.shutdown(wait=False, cancel_futures=True)

    async def _result(self, job: Future[T]) -> T:
        # Counted by the thread's own future: a cancelled caller leaves the thread at work.
        self._busy.add(job)  # type: ignore[arg-type]
        job.add_done_callback(self._busy.discard)
        return await asyncio.wrap_future(job)
