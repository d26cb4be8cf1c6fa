"""The reconciler of MetricChecks: it queries a check as long as something waits for it, and writes the results.

One query for each interval answers everything that waits with the same values of the placeholders; without anything
that waits there is none. A check that may not be asked, for example because the operator does not list its server, says
so in the condition Ready, and the gates that read it say it, too.

Results are in memory, where gates read them (`demand`); after a start, each check that something waits for is queried
at once. The status has those that a person or an agent needs, and is written with news only.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key
from kardinal.promotion.api import Bundle, MetricCheck, PromotionStep, set_condition
from kardinal.promotion.api.metric_check import MetricCheckSpec, MetricCheckStatus
from kardinal.promotion.kinds import METRIC_CHECK
from kardinal.promotion.metrics.outcomes import MetricOutcome, Wanted, after, failed_query, measured, results_of
from kardinal.promotion.metrics.provider import MetricError, MetricQuery
from kardinal.promotion.metrics.queries import MetricSubject, QueryError, query_fault, rendered, subject_of
from kardinal.promotion.metrics.readings import MetricReading
from kardinal.runtime import Informer, KeyMemory, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import metadata_changed, status_changed
from kardinal_controller.caches import Caches, checks_verified
from kardinal_controller.metric_checks.demand import MetricDemand
from kardinal_controller.metric_checks.servers import CheckRefused, MetricServers

__all__ = ["CONCURRENCY", "MetricCheckReconciler"]

CONCURRENCY = 8
"""The most checks that are queried at once."""
AT_ONCE = 4
"""The most queries of one check at once."""
QUERIES = 16
"""The most queries of one run, which take at most 100 s together; the rest are asked in the next run."""
AGAIN = timedelta(minutes=1)
"""The time after which a Secret that could not be used is read again."""

_SHORTEST = timedelta(seconds=2)
_LONGEST = timedelta(hours=1)
"""The bounds of `spec.interval`."""
_BRIEFEST = timedelta(seconds=1)
_SLOWEST = timedelta(seconds=25)
"""The bounds of `spec.timeout`."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Sample:
    """The last answer to a query with certain values: when it was asked, and what it says without its history."""

    asked: float
    outcome: MetricOutcome


@dataclass(slots=True)
class _Memory:
    """The samples and outcomes of a check of one version."""

    version: tuple[str, int]
    samples: dict[str, _Sample] = field(default_factory=dict)
    """By the text of the query."""
    outcomes: dict[MetricSubject, MetricOutcome] = field(default_factory=dict)


class MetricCheckReconciler:
    """Queries MetricChecks, and writes their status."""

    def __init__(
        self,
        checks: Informer,
        caches: Caches,
        demand: MetricDemand,
        servers: MetricServers,
        *,
        status: StatusWriter,
        clock: Clock,
    ) -> None:
        self._checks = checks
        self._caches = caches
        self._demand = demand
        self._servers = servers
        self._status = status
        self._clock = clock
        self.memory = KeyMemory(checks)
        self._known: dict[Key, _Memory] = self.memory.map()

    def sources(self) -> Sequence[Source]:
        return [
            Watch(self._checks, when=metadata_changed("uid", "generation")),
            Watch(self._caches.steps, map=checks_verified, when=status_changed("state", "verifyingSince")),
            self._demand.asked,
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._checks.get(*key)
        if current is None:
            self._demand.publish(key, {})
            return Result()
        check = MetricCheck.model_validate(current)
        memory = self._memory(key, check)
        if (problem := await self._problem(check)) is not None:
            memory.outcomes.clear()
            self._demand.publish(key, {}, problem=str(problem))
            await self._write(current, check, {}, problem)
            return Result(requeue_after=AGAIN if problem.transient else None)
        verified = self._verified(key)
        subjects = self._demand.subjects(key) | verified.keys()
        texts = _texts(check.spec.query, subjects)
        again = await self._ask(check, memory, {each for each in texts.values() if isinstance(each, str)})
        self._apply(check, memory, texts, verified)
        counts = 2 * _interval(check.spec) + _timeout(check.spec)
        self._demand.publish(key, {each: MetricReading(one, one.at + counts) for each, one in memory.outcomes.items()})
        await self._write(current, check, memory.outcomes, None, verified)
        return Result(requeue_after=again)

    def _verified(self, key: Key) -> dict[MetricSubject, Wanted]:
        """Return the promotions that wait for the results of a check."""
        found = {}
        for stored in self._caches.verifying(key):
            step = PromotionStep.model_validate(stored)
            spec = step.spec
            of = self._caches.bundles.get(step.metadata.namespace, spec.bundle_ref)
            since = step.status.verifying_since
            if of is not None and spec.verify is not None and since is not None:
                subject = subject_of(Bundle.model_validate(of), environment=spec.environment, pipeline=spec.pipeline)
                found[subject] = Wanted(since, spec.verify.for_)
        return found

    def _memory(self, key: Key, check: MetricCheck) -> _Memory:
        version = (check.metadata.uid, check.metadata.generation)
        known = self._known.get(key)
        if known is None or known.version != version:
            known = self._known[key] = _Memory(version)
        return known

    async def _problem(self, check: MetricCheck) -> CheckRefused | None:
        """Return why a check cannot be queried."""
        if (fault := query_fault(check.spec.query)) is not None:
            return CheckRefused("InvalidQuery", f"spec.query: {fault}")
        if check.spec.range is not None and check.spec.reduce is None:
            return CheckRefused(
                "InvalidQuery", "spec.reduce: a range has several samples: say which value they have together"
            )
        try:
            await self._servers.check(check.spec.provider, check.metadata.namespace)
        except CheckRefused as refusal:
            return refusal
        except MetricError as error:
            # A change of a Secret causes no event.
            return CheckRefused("SecretNotUsable", str(error), transient=True)
        return None

    async def _ask(self, check: MetricCheck, memory: _Memory, texts: Set[str]) -> timedelta | None:
        """Ask the queries that are due, the ones first that have waited for longest; return when the next one is due.

        The answer to a query that nothing waits for any more is kept for an interval.
        """
        now = self._clock.monotonic()
        interval = _interval(check.spec).total_seconds()
        memory.samples = {
            text: each for text, each in memory.samples.items() if text in texts or each.asked + interval > now
        }

        def due_at(text: str) -> float:
            sample = memory.samples.get(text)
            return sample.asked + interval if sample is not None else -math.inf

        due = sorted((text for text in texts if due_at(text) <= now), key=lambda text: (due_at(text), text))[:QUERIES]
        turns = asyncio.Semaphore(AT_ONCE)

        async def ask(text: str) -> None:
            async with turns:
                memory.samples[text] = _Sample(self._clock.monotonic(), await self._outcome(check, text))

        await asyncio.gather(*map(ask, due))
        left = min(map(due_at, texts), default=None)
        return timedelta(seconds=max(left - self._clock.monotonic(), 0.0)) if left is not None else None

    async def _outcome(self, check: MetricCheck, text: str) -> MetricOutcome:
        spec = check.spec
        at = self._clock.now()
        query = MetricQuery(
            text=text,
            at=at,
            timeout=_timeout(spec),
            length=spec.range.duration if spec.range is not None else None,
            step=spec.range.step if spec.range is not None else None,
        )
        try:
            samples = await self._servers.query(spec.provider, check.metadata.namespace, query)
        except MetricError as error:
            log.debug("a metric could not be queried", reason=str(error))
            return failed_query(str(error), now=at)
        return measured(spec, samples, now=at)

    def _apply(
        self,
        check: MetricCheck,
        memory: _Memory,
        texts: Mapping[MetricSubject, str | QueryError],
        verified: Mapping[MetricSubject, Wanted],
    ) -> None:
        """Give each subject the answer to its query. A row of answers for a verification begins when that begins."""
        before = memory.outcomes
        memory.outcomes = {}
        for subject, text in texts.items():
            known = before.get(subject)
            wanted = verified.get(subject)
            if known is not None and wanted is not None and known.since < wanted.since:
                known = None
            if isinstance(text, QueryError):
                found = failed_query(str(text), now=self._clock.now())
            elif (sample := memory.samples.get(text)) is not None:
                found = sample.outcome
            else:
                # It is due, and asked in the next run.
                if known is not None:
                    memory.outcomes[subject] = known
                continue
            if known is not None and known.at >= found.at:
                memory.outcomes[subject] = known
            else:
                memory.outcomes[subject] = after(known, found, limit=check.spec.failure_limit)

    async def _write(
        self,
        current: JsonObject,
        check: MetricCheck,
        outcomes: Mapping[MetricSubject, MetricOutcome],
        problem: CheckRefused | None,
        verified: Mapping[MetricSubject, Wanted] | None = None,
    ) -> None:
        conditions = set_condition(
            check.status.conditions,
            "Ready",
            "True" if problem is None else "False",
            reason="Usable" if problem is None else problem.reason,
            message="" if problem is None else str(problem),
            now=self._clock.now(),
            observed_generation=check.metadata.generation or None,
        )
        results = results_of(check.status.results, outcomes, verified or {}, kept=self._exists)
        status = MetricCheckStatus(
            observed_generation=check.metadata.generation or None, conditions=conditions, results=results
        )
        await self._status.write(METRIC_CHECK, current, status.to_json())

    def _exists(self, namespace: str, bundle: str) -> bool:
        return self._caches.bundles.get(namespace, bundle) is not None


def _texts(query: str, subjects: Iterable[MetricSubject]) -> dict[MetricSubject, str | QueryError]:
    """Return the query of each subject, or the reason why it cannot be asked for this one."""
    found: dict[MetricSubject, str | QueryError] = {}
    for subject in subjects:
        try:
            found[subject] = rendered(query, subject)
        except QueryError as error:
            found[subject] = error
    return found


def _interval(spec: MetricCheckSpec) -> timedelta:
    return min(max(spec.interval, _SHORTEST), _LONGEST)


def _timeout(spec: MetricCheckSpec) -> timedelta:
    return min(max(spec.timeout, _BRIEFEST), _SLOWEST)
