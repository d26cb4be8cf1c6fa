"""The metrics that the expression of a gate reads, as `metrics["success-rate"].value` (pure).

A check has `status` always, and `value` and `ageSeconds` once it was queried and as long as that counts. An old result
does not count: where the controller cannot ask any more, `status` is `Unknown` and there is no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kardinal.cel import Program, Reference
from kardinal.promotion.metrics.outcomes import MetricOutcome

__all__ = ["METRICS", "MetricReading", "MetricReadings", "checks_read", "metric_fault", "metric_of", "values_read"]

METRICS = "metrics"
"""The variable of an expression."""

AGE = "ageSeconds"
_FIELDS = ("value", "status", AGE)
_DOTTED = re.compile(r"\bmetrics\.([A-Za-z_]\w*+(?:-\w++)*+)")
_UNNAMED = f'name the check, as in {METRICS}["success-rate"].value'


@dataclass(frozen=True, slots=True)
class MetricReading:
    """The last result of a check for a Bundle in an environment, and the time until which it counts."""

    outcome: MetricOutcome
    until: datetime


@dataclass(frozen=True, slots=True)
class MetricReadings:
    """The readings of the checks by name. `problems` are the reasons why a check has none."""

    found: Mapping[str, MetricReading | None] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_pending(self) -> bool:
        """Return whether a check was not queried yet for this Bundle and environment."""
        return None in self.found.values()

    def scope(self, now: datetime) -> dict[str, Any]:
        """Return the value of the variable `metrics` at `now`."""
        return {name: _seen(reading, now) for name, reading in self.found.items()}

    def absence(self, path: str) -> str:
        """Return why there is no value at a path, for example `metrics.success-rate.value`."""
        name = metric_of(path)
        if name in self.problems:
            return f"{path} is not set: {self.problems[name]}"
        reading = self.found.get(name)
        if reading is None:
            return f"{path} is not set: the check was not queried yet"
        return f"{path} is not set: {reading.outcome.message or 'its last result is too old'}"

    def moments(self, ages: Iterable[float]) -> Iterable[datetime]:
        """Yield the moments at which a result no longer counts, or reaches an age in seconds."""
        for reading in self.found.values():
            if reading is not None:
                yield reading.until
                yield from (reading.outcome.at + timedelta(seconds=age) for age in ages)


def checks_read(program: Program) -> frozenset[str]:
    """Return the names of the checks that an expression without a fault reads."""
    return frozenset(each.path[0] for each in program.references if each.root == METRICS and each.path)


def metric_of(path: str) -> str:
    """Return the name of the check in a path: `success-rate` for `metrics.success-rate.value`."""
    name, _, last = path.removeprefix(f"{METRICS}.").rpartition(".")
    return name if last in _FIELDS else path.removeprefix(f"{METRICS}.")


def values_read(read: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Return the values of checks by name among what a gate has read, such as `("metrics.success-rate.value", "1")`."""
    found: dict[str, float] = {}
    for path, text in read:
        if path.startswith(f"{METRICS}.") and path.endswith(".value"):
            with suppress(ValueError):
                found[metric_of(path)] = float(text)
    return found


def metric_fault(reference: Reference, source: str) -> str | None:
    """Return why a reference to `metrics` in the expression `source` cannot be evaluated; None if it can."""
    if not reference.path:
        return f"{METRICS} is read as a whole: {_UNNAMED}"
    name, *rest = reference.path
    if len(rest) == 1 and rest[0] in _FIELDS:
        return None
    if rest:
        return (
            f"there is no attribute {reference}; there are: {', '.join(f'{METRICS}.{name}.{each}' for each in _FIELDS)}"
        )
    dotted = next((each for each in _DOTTED.findall(source) if each == name or each.startswith(f"{name}-")), name)
    return f'{METRICS}.{dotted} is no value: write {METRICS}["{dotted}"].value'


def _seen(reading: MetricReading | None, now: datetime) -> dict[str, Any]:
    if reading is None or now >= reading.until:
        return {"status": "Unknown"}
    outcome = reading.outcome
    seen: dict[str, Any] = {"status": outcome.status, AGE: max((now - outcome.at).total_seconds(), 0.0)}
    return seen if outcome.value is None else {**seen, "value": outcome.value}
