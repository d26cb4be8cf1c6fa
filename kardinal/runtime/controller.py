"""A controller: keys from its sources, one reconcile per key at a time, and growing waits after errors.

The loop handles the problems that are the same for every reconciler: never two runs of one key at the same time,
back-off per key, a deadline, own writes visible before the next run, and log lines with the key. A reconciler is a
function from a key to a `Result`. It is called again whenever an object that it watches changes. So an event may
replace the pending timer of `requeue_after` at any time, and every run must return again when the next one is due.

Exceptions decide about the next run. `TerminalError` is reported and not retried. Any other exception is retried. A
built-in exception of Python (a KeyError, an AttributeError) is a bug and counted as such, but the worker goes on. The
manager cancels the workers to stop the controller; any other CancelledError in a reconcile is treated as an error.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import structlog
from structlog.contextvars import bound_contextvars

from kardinal.clock import Clock
from kardinal.kube import Backoff, Conflict, recorded_writes
from kardinal.objects import Key
from kardinal.runtime.consistency import Consistency
from kardinal.runtime.errors import TerminalError
from kardinal.runtime.key_memory import KeyMemory
from kardinal.runtime.logging import describe
from kardinal.runtime.metrics import ControllerMetrics
from kardinal.runtime.queue import PriorityQueue, WorkItem
from kardinal.runtime.retry import Failures

__all__ = ["Controller", "Reconciler", "Result"]

RECONCILE_DEADLINE = 120.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a successful reconcile. With `requeue_after`, the key is reconciled again after that time."""

    requeue_after: timedelta | None = None
    priority: int | None = None  # of the next run; None keeps the priority of this run


class Reconciler(Protocol):
    """Bring the cluster, or one step of it, to the state that the object of `key` describes."""

    async def reconcile(self, key: Key) -> Result: ...


class Controller:
    """Run one reconciler with a fixed number of workers."""

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
        memory: KeyMemory | None = None,
    ) -> None:
        self.name = name
        self.queue = queue
        self._reconciler = reconciler
        self._consistency = consistency
        self._metrics = metrics
        self._clock = clock
        self._concurrency = concurrency
        self._deadline = deadline
        self._memory = memory
        self._failures: Failures[Key] = Failures(backoff)

    @property
    def idle(self) -> bool:
        """Return whether no key is ready or being worked on; delayed keys do not count."""
        return not self.queue and not self.queue.processing

    async def run(self) -> None:
        """Work until the queue is shut down and every current run has ended."""
        async with asyncio.TaskGroup() as workers:
            for number in range(self._concurrency):
                workers.create_task(self._work(), name=f"{self.name} worker {number}")

    async def _work(self) -> None:
        while (item := await self.queue.get()) is not None:
            try:
                await self._run(item)
            finally:
                self.queue.done(item.key)
            # A reconcile without any await would keep all other tasks from the event loop.
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
                        if self._memory is not None:
                            self._memory.drop_if_gone(key)
            finally:
                metrics.active_workers.dec()
            took = self._clock.monotonic() - started
            metrics.durations.observe(took)
            metrics.work_durations.observe(took)
            metrics.results[outcome].inc()
            log.debug("reconciled", result=outcome, seconds=round(took, 3))

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
            # Another client wrote first, and the next run sees its write. No person has to act.
            log.debug("reconcile met a conflict", error=str(error))
        else:
            log.warning("reconcile failed", error=str(error) or type(error).__name__, retry_in=round(delay, 3))
        self.queue.add(item.key, priority=item.priority, after=delay)
        return "error"


def _is_bug(error: BaseException) -> bool:
    """Return whether Python raises this exception for a bug. An OSError is a failure instead."""
    return type(error).__module__ == "builtins" and not isinstance(error, OSError)
