"""A controller: keys from its sources, one reconcile per key at a time, errors that wait longer each time.

The loop owns everything that every reconciler would otherwise get wrong: never two runs of one key at once, back-off
per key, a deadline, its own writes visible before the next run, log lines that say whose they are. A reconciler is a
function from a key to a `Result`; it is called again whenever anything it watches changes, so the pending timer of
`requeue_after` may be replaced by an event at any time and every run must say anew when it wants the next.

Exceptions decide what follows. `TerminalError` is reported and forgotten. Anything else is tried again; an exception
of Python itself (a KeyError, an AttributeError) is a bug and counted as such, and the worker lives on. Cancellation
belongs to the manager that stops the controller: any other CancelledError of a reconcile is an error like others.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog
from structlog.contextvars import bound_contextvars

from kardinal.kube import Backoff, Conflict, recorded_writes
from kardinal.objects import Key
from kardinal.runtime.clock import Clock
from kardinal.runtime.consistency import Consistency
from kardinal.runtime.errors import TerminalError
from kardinal.runtime.logging import describe
from kardinal.runtime.metrics import ControllerMetrics
from kardinal.runtime.queue import PriorityQueue, WorkItem
from kardinal.runtime.retry import Failures

__all__ = ["Controller", "Reconciler", "Result"]

RECONCILE_DEADLINE = 120.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Result:
    """How a reconcile ended well: done, or done until `requeue_after` from now."""

    requeue_after: timedelta | None = None
    priority: int | None = None  # of the next run; None keeps the one this run had


class Reconciler(Protocol):
    """Makes the world look as the object of `key` says, or the next step of it."""

    async def reconcile(self, key: Key) -> Result: ...


class Controller:
    """Runs one reconciler with a bounded number of workers."""

    def __init__(
        self,
        name: str,
        reconciler: Reconciler,
        *,
        queue: PriorityQueue,
        consistency: Consistency,
        metrics: ControllerMetrics,
        clock: Clock,
        concurrency: int,
        backoff: Backoff,
        deadline: float = RECONCILE_DEADLINE,
    ) -> None:
        self.name = name
        self.queue = queue
        self._reconciler = reconciler
        self._consistency = consistency
        self._metrics = metrics
        self._clock = clock
        self._concurrency = concurrency
        self._deadline = deadline
        self._failures: Failures[Key] = Failures(backoff)

    @property
    def idle(self) -> bool:
        """Nothing is ready and nothing is being worked on; delayed keys do not count."""
        return not self.queue and not self.queue.processing

    async def run(self) -> None:
        """Work until the queue is shut down and every run under way has ended."""
        async with asyncio.TaskGroup() as workers:
            for number in range(self._concurrency):
                workers.create_task(self._work(), name=f"{self.name} worker {number}")

    async def _work(self) -> None:
        while (item := await self.queue.get()) is not None:
            try:
                await self._run(item)
            finally:
                self.queue.done(item.key)
            # A reconcile that never waits would keep everyone else from the loop.
            await asyncio.sleep(0)

    async def _run(self, item: WorkItem) -> None:
        key = item.key
        metrics = self._metrics
        metrics.queue_waits.observe(item.waited)
        with bound_contextvars(
            controller=self.name, namespace=key.namespace, name=key.name, reconcileID=uuid.uuid4().hex
        ):
            await self._consistency.wait(key)
            started = self._clock.monotonic()
            metrics.active_workers.inc()
            try:
                with recorded_writes() as writes:
                    try:
                        outcome = await self._reconcile(item)
                    finally:
                        self._consistency.note(key, writes)
            finally:
                metrics.active_workers.dec()
            took = self._clock.monotonic() - started
            metrics.durations.observe(took)
            metrics.work_durations.observe(took)
            metrics.results[outcome].inc()

    async def _reconcile(self, item: WorkItem) -> str:
        deadline = asyncio.timeout(self._deadline)
        try:
            async with deadline:
                result = await self._reconciler.reconcile(item.key)
        except TerminalError as error:
            self._failures.forget(item.key)
            self._metrics.terminal_errors.inc()
            self._metrics.errors.inc()
            log.error("reconcile failed for good", error=str(error))
            return "error"
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._failed(item, error)
        except Exception as error:
            if deadline.expired():
                self._metrics.timeouts.inc()
            return self._failed(item, error)
        self._failures.forget(item.key)
        if result.requeue_after is None:
            return "success"
        priority = item.priority if result.priority is None else result.priority
        self.queue.add(item.key, priority=priority, after=result.requeue_after.total_seconds())
        return "requeue_after"

    def _failed(self, item: WorkItem, error: BaseException) -> str:
        delay = self._failures.next_delay(item.key)
        self._metrics.errors.inc()
        self._metrics.retries.inc()
        if _is_bug(error):
            self._metrics.panics.inc()
            log.error("reconcile failed by a bug", retry_in=round(delay, 3), **describe(error))
        elif isinstance(error, Conflict):
            # Another writer was first; the next run sees its write. Nothing for a person to do.
            log.debug("reconcile met a conflict", error=str(error))
        else:
            log.warning("reconcile failed", error=str(error) or type(error).__name__, retry_in=round(delay, 3))
        self.queue.add(item.key, priority=item.priority, after=delay)
        return "error"


def _is_bug(error: BaseException) -> bool:
    """Return whether an exception is one that Python raises for a bug; those of the system are failures."""
    return type(error).__module__ == "builtins" and not isinstance(error, OSError)
