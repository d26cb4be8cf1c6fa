"""From samples to the result of a check, and to the results in its status (pure).

A check has one status for each Bundle in each environment. A value that satisfies `failureCondition` is a Failure, also
if it satisfies `successCondition`, so that conditions that overlap by mistake stop a promotion.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kardinal.objects.text import cut
from kardinal.promotion.api.metric_check import KEPT_RESULTS, MetricCheckSpec, MetricResult, MetricStatus
from kardinal.promotion.metrics.provider import Samples
from kardinal.promotion.metrics.queries import MetricSubject

__all__ = ["REWRITE", "MetricOutcome", "Wanted", "after", "failed_query", "measured", "results_of"]

REWRITE = timedelta(minutes=5)
"""The time after which a result without a change is written again."""

_MESSAGE_LIMIT = 500
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_REDUCTIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "sum": math.fsum,
    "avg": lambda values: math.fsum(values) / len(values),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOutcome:
    """The result of the last query, and for how long the results have had its status."""

    status: MetricStatus
    at: datetime
    value: float | None = None
    message: str = ""
    since: datetime
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The need of a promotion that is verified: successes of a check from `since` on, for the time `lasting`."""

    since: datetime
    lasting: timedelta


def measured(spec: MetricCheckSpec, samples: Samples, *, now: datetime) -> MetricOutcome:
    """Return the outcome of the samples of an answer. NaN, as of 0 / 0, is no data."""
    values = [value for value in samples.values if not math.isnan(value)]
    if not values:
        nothing = "the query gives NaN, as a division of nothing by nothing does" if samples.values else "no series"
        absent: Mapping[str, MetricStatus] = {"hold": "NoData", "pass": "Success", "fail": "Failure"}
        return MetricOutcome(status=absent[spec.no_data_behavior], at=now, since=now, message=f"no data: {nothing}")
    if spec.reduce is None and not samples.single:
        several = f"the query gives {len(samples.values)} values"
        return failed_query(f"{several}: combine them in the query, or say how by spec.reduce", now=now)
    try:
        value = values[0] if spec.reduce is None else _REDUCTIONS[spec.reduce](values)
    except (OverflowError, ValueError):
        value = math.nan
    if math.isnan(value):
        return failed_query(f"the {spec.reduce} of infinite values is no number", now=now)
    status = _status(spec, value)
    if math.isfinite(value):
        return MetricOutcome(status=status, at=now, since=now, value=value)
    return MetricOutcome(status=status, at=now, since=now, message=f"the value is {value}")


def failed_query(message: str, *, now: datetime) -> MetricOutcome:
    """Return the outcome of a query without an answer."""
    return MetricOutcome(status="Error", at=now, since=now, message=cut(message, _MESSAGE_LIMIT))


def after(before: MetricOutcome | None, found: MetricOutcome, *, limit: int) -> MetricOutcome:
    """Return `found` as the successor of `before`, with the beginning of its status and the failures in a row.

    A query without an answer, or without data, neither adds to the failures nor ends their row.
    """
    same = before is not None and before.status == found.status
    failures = before.failures if before is not None and found.status in ("Failure", "Error", "NoData") else 0
    return MetricOutcome(
        status=found.status,
        at=found.at,
        value=found.value,
        message=found.message,
        since=before.since if before is not None and same else found.at,
        failures=min(failures + (found.status == "Failure"), limit),
    )


def results_of(
    before: Iterable[MetricResult],
    outcomes: Mapping[MetricSubject, MetricOutcome],
    verified: Mapping[MetricSubject, Wanted],
    *,
    kept: Callable[[str, str], bool],
) -> tuple[MetricResult, ...]:
    """Return the results for the status: those of `outcomes` that are news, and the earlier ones.

    `verified` are the subjects of promotions that wait for the check; their results come first. Of the others the
    latest are kept, if their Bundle still exists (`kept`, by namespace and name).
    """
    written = {(each.namespace, each.bundle, each.environment): each for each in before}
    waiting = {_key(subject) for subject in verified}
    for subject, outcome in outcomes.items():
        known = written.get(_key(subject))
        if known is None or _is_news(known, outcome, verified.get(subject)):
            written[_key(subject)] = _result(subject, outcome)
    found = [result for key, result in written.items() if kept(key[0], key[1])]
    first = sorted((each for each in found if _key(each) in waiting), key=lambda each: (each.since, _key(each)))
    others = sorted((each for each in found if _key(each) not in waiting), key=lambda each: (each.at, _key(each)))
    return (*first, *reversed(others))[:KEPT_RESULTS]


def _is_news(known: MetricResult, outcome: MetricOutcome, wanted: Wanted | None) -> bool:
    if known.status != outcome.status or known.since != outcome.since:
        return True
    if (known.failures or 0) != outcome.failures or outcome.at - known.at >= REWRITE:
        return True
    if wanted is None:
        return False
    enough = outcome.since + wanted.lasting
    return outcome.status == "Success" and known.at < enough <= outcome.at


def _status(spec: MetricCheckSpec, value: float) -> MetricStatus:
    if spec.failure_condition is not None and _holds(spec.failure_condition, value):
        return "Failure"
    if _holds(spec.success_condition, value):
        return "Success"
    return "Failure" if spec.failure_condition is None else "Unknown"


def _holds(condition: str, value: float) -> bool:
    """Return whether a value satisfies a condition such as `>= 0.99`."""
    sign = condition.rstrip("-0123456789.").rstrip()
    return _OPERATORS[sign](value, float(condition[len(sign) :]))


def _key(of: MetricSubject | MetricResult) -> tuple[str, str, str]:
    return of.namespace, of.bundle, of.environment


def _result(subject: MetricSubject, outcome: MetricOutcome) -> MetricResult:
    return MetricResult(
        namespace=subject.namespace,
        bundle=subject.bundle,
        environment=subject.environment,
        status=outcome.status,
        value=outcome.value,
        at=outcome.at,
        since=outcome.since,
        failures=outcome.failures or None,
        message=outcome.message or None,
    )
