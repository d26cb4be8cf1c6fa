"""Tell whether the metrics of an environment have passed for long enough since it was proven healthy (pure).

The control plane queries the checks of `verify` from then on and writes the results to their status; an agent only
reads them. So an agent needs no way to any server of metrics, and no credential for one.

A check passes while every query succeeds; the time between the first and the last query of the row is what counts, so
that nothing passes without queries. It has failed once `failureLimit` queries in a row have. Anything else, such as a
server that is down, only makes the promotion wait: an outage of monitoring rolls nothing back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from kardinal.objects.conditions import format_time
from kardinal.objects.duration import format_duration
from kardinal.promotion.api import MetricCheck
from kardinal.promotion.api.metric_check import MetricResult

__all__ = ["Verification", "verification"]


@dataclass(frozen=True, slots=True)
class Verification:
    """The state of all checks together, with the reason in words, and their last values."""

    state: Literal["passed", "waiting", "failed"]
    message: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


def verification(
    checks: Mapping[str, MetricCheck | None],
    *,
    bundle: str,
    environment: str,
    since: datetime | None,
    lasting: timedelta,
) -> Verification:
    """Return the state of the checks of a promotion by name; a check that does not exist is None.

    `since`: the time at which the environment was proven healthy; None before. `lasting`: for how long they must pass.
    """
    if since is None:
        return Verification("waiting", "metrics are asked once the environment is healthy")
    failed: list[str] = []
    waits: list[str] = []
    values: dict[str, float] = {}
    for name, check in checks.items():
        result = _result(check, bundle, environment, since) if check is not None else None
        if result is not None and result.value is not None:
            values[name] = result.value
        if check is not None and result is not None and _has_failed(check, result):
            times = f", {result.failures} times in a row" if check.spec.failure_limit > 1 else ""
            failed.append(f"metric {name} fails{times}: {_told(result)}")
        elif (reason := _waits(name, check, result, lasting)) is not None:
            waits.append(reason)
    if failed:
        return Verification("failed", "; ".join(failed), values)
    return Verification("waiting" if waits else "passed", "; ".join(waits), values)


def _result(check: MetricCheck, bundle: str, environment: str, since: datetime) -> MetricResult | None:
    """Return the result since the environment is healthy; an earlier one is about what ran there before."""
    result = check.status.result(check.metadata.namespace, bundle, environment)
    return result if result is not None and result.since >= since else None


def _has_failed(check: MetricCheck, result: MetricResult) -> bool:
    return result.status == "Failure" and (result.failures or 0) >= check.spec.failure_limit


def _waits(name: str, check: MetricCheck | None, result: MetricResult | None, lasting: timedelta) -> str | None:
    if check is None:
        return f"waits for MetricCheck {name}, which does not exist"
    ready = check.status.condition("Ready")
    if ready is not None and ready.status == "False":
        return f"waits for metric {name}: {ready.message}"
    if result is None:
        return f"waits for the first result of metric {name}"
    if result.status != "Success":
        return f"waits for metric {name}: {_told(result)}"
    if result.at - result.since < lasting:
        return f"waits until metric {name} has passed for {format_duration(lasting)}, since {format_time(result.since)}"
    return None


def _told(result: MetricResult) -> str:
    return result.message or (f"the value is {result.value:g}" if result.value is not None else result.status)
