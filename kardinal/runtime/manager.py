"""One program: its caches, controllers and helpers, started in a fixed order and stopped in reverse.

Probes start first. Then caches are read, and the other parts start only when all caches are complete, because a
reconciler that sees only a part of the objects could delete the others. Stopping goes in reverse: controllers take no
more keys and finish their current runs, then the helpers stop, then the recorder writes its pending Events, and finally
caches and probes end. Current runs have thirty seconds, and the helpers more time after that, so that a push to a Git
host can end; both together take less than `terminationGracePeriodSeconds` of the pods.

The first failure of any part ends the program, and `run` raises it; failures caused by stopping are ignored.
Controllers and caches are declared before the start, so that the composition root shows which permissions and how much
memory a program needs. Only watches that are needed for a while are opened at run time (`dynamic`).
"""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from prometheus_client import CollectorRegistry

from kardinal.clock import Clock
from kardinal.kube import Backoff, Client
from kardinal.objects import ResourceType
from kardinal.runtime.consistency import Consistency
from kardinal.runtime.controller import Controller, Reconciler
from kardinal.runtime.dynamic import DynamicInformers
from kardinal.runtime.errors import GraceExceeded, SyncTimeout, UndeclaredInformer
from kardinal.runtime.http import Check, ProbeServer
from kardinal.runtime.informer import Informer
from kardinal.runtime.key_memory import KeyMemory
from kardinal.runtime.logging import describe
from kardinal.runtime.metrics import Metrics
from kardinal.runtime.queue import PriorityQueue
from kardinal.runtime.recorder import EventRecorder
from kardinal.runtime.reflector import WatchScope
from kardinal.runtime.scrapes import ScrapeAccess
from kardinal.runtime.sources import Source
from kardinal.runtime.status import StatusWriter

__all__ = ["Manager", "Runnable"]

SYNC_SECONDS = 120.0
GRACE_SECONDS = 30.0
"""The time in seconds for current runs to end."""
HELPERS_SECONDS = 70.0
"""The time in seconds for the helpers to stop, after that."""
WORKERS = 4
ITEM_BACKOFF = Backoff(base=0.005, cap=1000.0, jitter=0.1)

log = structlog.get_logger(__name__)


class Runnable(Protocol):
    """A part of the program that is neither cache nor controller: a web server, a poll."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Manager:
    """Own all running parts of a program."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        name: str,
        probe_address: str | None = None,
        metrics_address: str | None = None,
        scrape_access: ScrapeAccess | None = None,
        sync_timeout: float = SYNC_SECONDS,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self.client = client
        self.clock = clock
        self.name = name
        self.status = StatusWriter(client)
        self._figures = Metrics(clock=clock)
        self.recorder = EventRecorder(
            client,
            clock=clock,
            controller=name,
            dropped=lambda reason: self._figures.events_dropped.labels(reason).inc(),
        )
        self._informers: dict[WatchScope, Informer] = {}
        self._controllers: list[Controller] = []
        self._runnables: list[Runnable] = []
        self._started: list[Runnable] = []
        self.dynamic = DynamicInformers(client, clock=clock, metrics=self._figures, ended=self._ended)
        """The informers that are started and stopped at run time."""
        self._checks: dict[str, Check] = {"caches": self._unsynced}
        self._server = ProbeServer(
            probe_address=probe_address,
            metrics_address=metrics_address,
            ready_checks=self._checks,
            metrics=self._figures,
            scrape_access=scrape_access,
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._working: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None
        self._failed = asyncio.Event()
        self._sync_timeout = sync_timeout
        self._grace = grace
        self._state = "declared"
        client.observe(self._figures.observe_requests(urlsplit(client.connection.server).netloc))

    @property
    def metrics(self) -> CollectorRegistry:
        """The registry of the program's own metrics."""
        return self._figures.registry

    @property
    def informers(self) -> Sequence[Informer]:
        """The declared informers, and the dynamic ones that are running."""
        return [*self._informers.values(), *self.dynamic.informers]

    @property
    def urls(self) -> dict[str, str]:
        """The URLs of `probes` and `metrics` while they are served."""
        return dict(self._server.urls)

    @property
    def idle(self) -> bool:
        """Return whether no key is ready or being worked on; delayed keys do not count."""
        return all(controller.idle for controller in self._controllers)

    def activity(self) -> list[str]:
        """Return one line per controller that is not idle, for diagnosis."""
        return [
            f"{each.name}: {len(each.queue)} ready, at work on {sorted(map(str, each.queue.processing))}"
            for each in self._controllers
            if not each.idle
        ]

    def informer(
        self,
        resource: ResourceType,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
    ) -> Informer:
        """Return the shared informer of these objects: the same informer for every caller with the same scope."""
        scope = WatchScope(resource, namespace, labels, fields)
        if scope not in self._informers:
            if self._state != "declared":
                raise UndeclaredInformer(f"{resource.kind}: informers are declared before the manager starts")
            self._informers[scope] = Informer(
                self.client, scope, clock=self.clock, metrics=self._figures.informer(resource.kind)
            )
        return self._informers[scope]

    def controller(
        self,
        name: str,
        reconciler: Reconciler,
        sources: Sequence[Source],
        *,
        concurrency: int = WORKERS,
        backoff: Backoff = ITEM_BACKOFF,
        memory: KeyMemory | None = None,
    ) -> Controller:
        """Declare a controller. Its sources are attached at once; its workers start with the manager.

        `memory` is dropped for each object that a run finds gone, so the sources have to tell of deletions.
        """
        self._only_before_start()
        queue = PriorityQueue(clock=self.clock, workers=concurrency)
        metrics = self._figures.controller(name, queue, concurrency=concurrency)
        controller = Controller(
            name,
            reconciler,
            queue=queue,
            consistency=Consistency(
                self._informers_to_wait_for,
                waited=lambda outcome: metrics.stale_waits[outcome].inc(),
            ),
            metrics=metrics,
            clock=self.clock,
            concurrency=concurrency,
            backoff=backoff,
            memory=memory,
        )
        for source in sources:
            source.attach(queue)
        self._controllers.append(controller)
        return controller

    def add(self, runnable: Runnable) -> None:
        """Start and stop `runnable` with the manager: after the caches, before the controllers."""
        self._only_before_start()
        self._runnables.append(runnable)

    def add_ready_check(self, name: str, check: Check) -> None:
        """Add `check` to the checks of /readyz."""
        self._checks[name] = check

    async def start(self) -> None:
        """Start everything; on return, caches are complete and controllers work.

        On failure all parts are stopped again.
        """
        self._only_before_start()
        self._state = "running"
        try:
            await self._server.start()
            self._spawn("recorder", self.recorder.run())
            for scope, informer in self._informers.items():
                self._spawn(f"informer {scope.resource.kind}", informer.run())
            await self._sync()
            for runnable in self._runnables:
                self._started.append(runnable)
                await runnable.start()
            for controller in self._controllers:
                self._working.append(self._spawn(f"controller {controller.name}", controller.run()))
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop all parts within their grace, newest first; at once if cancelled. Stopping twice is harmless."""
        if self._state == "stopped":
            return
        self._state = "stopped"
        late: list[str] = []
        loop = asyncio.get_running_loop()
        for controller in self._controllers:
            controller.queue.shut_down()
        try:
            late += await self._wait_for_controllers(loop.time() + self._grace)
            deadline = loop.time() + HELPERS_SECONDS
            for runnable in reversed(self._started):
                await self._within(deadline, type(runnable).__name__, runnable.stop(), late)
            await self.recorder.flush()
        finally:
            await self.dynamic.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.stop()
        if late:
            raise GraceExceeded(f"not stopped in time: {', '.join(late)}")

    async def run(self, stop_event: asyncio.Event | None = None) -> None:
        """Run as a process: until `stop_event`, SIGINT, SIGTERM, or the first failure, which is raised.

        A second signal stops at once.
        """
        stopping = stop_event or asyncio.Event()
        loop = asyncio.get_running_loop()
        me = asyncio.current_task()

        def on_signal() -> None:
            if stopping.is_set() and me is not None:
                me.cancel()
            stopping.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, on_signal)
        try:
            await self._run_until(stopping)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def _run_until(self, stopping: asyncio.Event) -> None:
        starting = asyncio.ensure_future(self.start())
        stopped = asyncio.ensure_future(stopping.wait())
        failed = asyncio.ensure_future(self._failed.wait())
        try:
            await asyncio.wait((starting, stopped, failed), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                await starting
                # The caches live as long as the process, so garbage collections need not visit them each time.
                gc.collect()
                gc.freeze()
                log.info("running", manager=self.name)
                await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
            log.info("stopping", manager=self.name)
        finally:
            for task in (starting, stopped, failed):
                task.cancel()
            await asyncio.gather(starting, stopped, failed, return_exceptions=True)
            try:
                await self.stop()
            finally:
                if self._failure is not None:
                    raise self._failure

    async def _sync(self) -> None:
        """Wait until every cache is complete, or until any part has failed."""
        failed = asyncio.ensure_future(self._failed.wait())
        synced = asyncio.gather(*(informer.wait_synced() for informer in self._informers.values()))
        try:
            await asyncio.wait((synced, failed), timeout=self._sync_timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            failed.cancel()
            synced.cancel()
            await asyncio.gather(failed, synced, return_exceptions=True)
        if self._failure is not None:
            raise self._failure
        if missing := self._unsynced():
            raise SyncTimeout(
                f"{missing} within {self._sync_timeout:.0f} s: is the CustomResourceDefinition installed "
                "and may this account list and watch it?"
            )

    def _unsynced(self) -> str | None:
        missing = sorted({each.resource.kind for each in self._informers.values() if not each.synced})
        return f"could not read {', '.join(missing)}" if missing else None

    def _informers_to_wait_for(self) -> Sequence[Informer]:
        """Return the informers that will show the writes of a reconcile; dynamic ones only while they are followed."""
        followed = [each for each in self.dynamic.informers if each.synced and each.outage is None]
        return [*self._informers.values(), *followed]

    def _only_before_start(self) -> None:
        if self._state != "declared":
            raise RuntimeError(f"the manager {self.name} is {self._state}: declare and start it once")

    def _spawn(self, name: str, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or (error := task.exception()) is None or self._failure is not None:
            return
        self._failure = error
        log.error("a part of the program failed", manager=self.name, part=task.get_name(), **describe(error))
        self._failed.set()

    async def _wait_for_controllers(self, deadline: float) -> list[str]:
        """Let current runs end; cancel those that have not ended by `deadline`, and return their names."""
        if not self._working:
            return []
        left = max(deadline - asyncio.get_running_loop().time(), 0.0)
        _, pending = await asyncio.wait(self._working, timeout=left)
        for task in pending:
            task.cancel()
        return [task.get_name() for task in self._working if task in pending]

    async def _within(self, deadline: float, name: str, stopping: Awaitable[None], late: list[str]) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await stopping
        except TimeoutError:
            late.append(name)
        except Exception as error:
            log.error("a part of the program failed to stop", manager=self.name, part=name, **describe(error))
