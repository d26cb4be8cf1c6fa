"""Metrics with the names that controller-runtime made common, so that existing dashboards and alerts work.

Every manager has its own registry, because the metrics of two programs in one process, or of two tests, must not be
added. Values that a queue or an informer can return at any time (depth, age, number of objects) are read at each scrape
and cost nothing in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kardinal.clock import Clock
from kardinal.runtime.queue import PriorityQueue

__all__ = ["ControllerMetrics", "InformerMetrics", "Metrics"]

RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
QUEUE_SECONDS = tuple(10.0**exponent for exponent in range(-8, 4))
RESULTS = ("success", "error", "requeue_after")
STALE_OUTCOMES = ("seen", "timeout")


class Metrics:
    """All metric families of one manager."""

    def __init__(self, *, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self.clock = clock
        self.reconciles = self._counter("controller_runtime_reconcile", "Reconciles by result", "controller", "result")
        self.errors = self._counter("controller_runtime_reconcile_errors", "Reconciles that failed", "controller")
        self.terminal_errors = self._counter(
            "controller_runtime_terminal_reconcile_errors", "Reconciles that failed for good", "controller"
        )
        self.panics = self._counter(
            "controller_runtime_reconcile_panics", "Reconciles that failed by a programming error", "controller"
        )
        self.timeouts = self._counter("controller_runtime_reconcile_timeouts", "Reconciles cut short", "controller")
        self.durations = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Duration of reconciles",
            ["controller"],
            buckets=RECONCILE_SECONDS,
            registry=self.registry,
        )
        self.max_concurrent = self._gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers of a controller", "controller"
        )
        self.active_workers = self._gauge("controller_runtime_active_workers", "Workers at work", "controller")
        self.queue_waits = self._queue_histogram("workqueue_queue_duration_seconds", "Time a ready key waited")
        self.work_durations = self._queue_histogram("workqueue_work_duration_seconds", "Time a key was worked on")
        self.retries = self._counter("workqueue_retries", "Keys put back after a failure", "name", "controller")
        self.requests = self._counter("rest_client_requests", "Answers of the API server", "code", "method", "host")
        self.watch_restarts = self._counter("kardinal_watch_restarts", "Watches begun again", "kind", "reason")
        self.handler_failures = self._counter("kardinal_event_handler_failures", "Handlers that raised", "kind")
        self.stale_waits = self._counter(
            "kardinal_stale_waits", "Reconciles that waited for their own writes", "controller", "outcome"
        )
        self.events_dropped = self._counter("kardinal_events_dropped", "Kubernetes Events not written", "reason")
        self.loop_lag = Gauge(
            "kardinal_event_loop_lag_seconds", "How late the event loop was at the last probe", registry=self.registry
        )
        self._queues = _QueueCollector(clock)
        self._informers = _InformerCollector(clock)
        self.registry.register(self._queues)
        self.registry.register(self._informers)

    def controller(self, name: str, queue: PriorityQueue, *, concurrency: int) -> ControllerMetrics:
        """Return the metrics of one controller, all present with the value zero."""
        self._queues.queues[name] = queue
        return ControllerMetrics(self, name, concurrency=concurrency)

    def informer(self, kind: str) -> InformerMetrics:
        """Return the metrics of one informer."""
        return InformerMetrics(self, kind, self._informers)

    def observe_requests(self, host: str) -> Callable[[str, int], None]:
        """Return the observer that a client calls for every answer of the server at `host`."""

        def observe(method: str, status: int) -> None:
            self.requests.labels(str(status), method, host).inc()

        return observe

    async def measure_loop_lag(self) -> None:
        """Measure the time after which the event loop resumes a task that has yielded once."""
        loop = asyncio.get_running_loop()
        left = loop.time()
        await asyncio.sleep(0)
        self.loop_lag.set(loop.time() - left)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _queue_histogram(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, ["name", "controller"], buckets=QUEUE_SECONDS, registry=self.registry)


class ControllerMetrics:
    """The families of `Metrics` with the labels of one controller."""

    def __init__(self, metrics: Metrics, name: str, *, concurrency: int) -> None:
        self.results = {result: metrics.reconciles.labels(name, result) for result in RESULTS}
        self.errors = metrics.errors.labels(name)
        self.terminal_errors = metrics.terminal_errors.labels(name)
        self.panics = metrics.panics.labels(name)
        self.timeouts = metrics.timeouts.labels(name)
        self.durations = metrics.durations.labels(name)
        self.active_workers = metrics.active_workers.labels(name)
        self.queue_waits = metrics.queue_waits.labels(name, name)
        self.work_durations = metrics.work_durations.labels(name, name)
        self.retries = metrics.retries.labels(name, name)
        self.stale_waits = {outcome: metrics.stale_waits.labels(name, outcome) for outcome in STALE_OUTCOMES}
        metrics.max_concurrent.labels(name).set(concurrency)


class InformerMetrics:
    """The families of `Metrics` with the label of one kind."""

    def __init__(self, metrics: Metrics, kind: str, collector: _InformerCollector) -> None:
        self._kind = kind
        self._restarts = metrics.watch_restarts
        self._failures = metrics.handler_failures.labels(kind)
        self._collector = collector
        self._clock = metrics.clock

    def watch_objects(self, count: Callable[[], int]) -> None:
        """Call `count` for the number of objects at every scrape."""
        self._count = (self._kind, count)
        self._collector.counts.append(self._count)

    def forget(self) -> None:
        """Remove the informer; without another informer of the kind, the metrics of the kind disappear."""
        self._collector.counts.remove(self._count)
        if all(kind != self._kind for kind, _ in self._collector.counts):
            self._collector.progress.pop(self._kind, None)

    def progressed(self) -> None:
        self._collector.progress[self._kind] = self._clock.monotonic()

    def interrupted(self, reason: str) -> None:
        self._restarts.labels(self._kind, reason).inc()

    def handler_failed(self) -> None:
        self._failures.inc()


class _QueueCollector(Collector):
    """Read the state of every queue at each scrape."""

    def __init__(self, clock: Clock) -> None:
        self.queues: dict[str, PriorityQueue] = {}
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        labels = ["name", "controller"]
        depth = GaugeMetricFamily("workqueue_depth", "Keys ready to be worked on", labels=[*labels, "priority"])
        delayed = GaugeMetricFamily("kardinal_workqueue_delayed", "Keys whose time has not come", labels=labels)
        adds = CounterMetricFamily("workqueue_adds", "Keys added", labels=labels)
        unfinished = GaugeMetricFamily("workqueue_unfinished_work_seconds", "Work under way, summed", labels=labels)
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds", "The oldest work under way", labels=labels
        )
        now = self._clock.monotonic()
        for name, queue in self.queues.items():
            for priority, size in (queue.depth or {0: 0}).items():
                depth.add_metric([name, name, str(priority)], size)
            ages = [now - started for started in queue.processing.values()]
            delayed.add_metric([name, name], queue.delayed)
            adds.add_metric([name, name], queue.added)
            unfinished.add_metric([name, name], sum(ages))
            longest.add_metric([name, name], max(ages, default=0.0))
        return [depth, delayed, adds, unfinished, longest]


class _InformerCollector(Collector):
    """Read the state of every informer at each scrape."""

    def __init__(self, clock: Clock) -> None:
        self.counts: list[tuple[str, Callable[[], int]]] = []
        self.progress: dict[str, float] = {}
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        objects = GaugeMetricFamily("kardinal_informer_objects", "Objects in memory", labels=["kind"])
        age = GaugeMetricFamily("kardinal_last_event_age_seconds", "Time since a watch said anything", labels=["kind"])
        totals: dict[str, int] = {}
        for kind, count in self.counts:
            totals[kind] = totals.get(kind, 0) + count()
        now = self._clock.monotonic()
        for kind, total in totals.items():
            objects.add_metric([kind], total)
        for kind, moment in self.progress.items():
            age.add_metric([kind], now - moment)
        return [objects, age]
