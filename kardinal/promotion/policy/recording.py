"""The values that an evaluation of a gate read, recorded so that it can be done again later, with any policy (pure).

What follows from the spec of the Bundle, which never changes, or from the time is not recorded. The rest is recorded by
variable, and for `bundle` by attribute: `{"bundle": {"labels": {…}, "upstreamSoakMinutes": 12.5}, "upstream": {…}}`.
An attribute that was read and had no value is null. An expression that reads what was not recorded has no answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from kardinal import cel
from kardinal.promotion.api import Bundle
from kardinal.promotion.metrics.readings import MetricReadings
from kardinal.promotion.policy.approvals import Approvals
from kardinal.promotion.policy.calendar import Calendar
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import Answer, evaluate, fault
from kardinal.promotion.policy.soak import HealthyTime, Soak

__all__ = ["RECORDED_BYTES", "RecordedContext", "evaluate_recorded", "record", "unrecorded"]

RECORDED_BYTES = 2 << 10
"""The most bytes of JSON that are recorded for a gate; a larger record is left out as a whole."""

_OF_THE_SPEC = frozenset(["name", "version", "type", "provenance", "emergency"])
"""The attributes of a Bundle that never change."""
_SOAK = "upstreamSoakMinutes"
_HOLIDAY = "isHoliday"


def record(program: cel.Program, scope: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what `program` has read of `scope`; None if that is too large."""
    found: dict[str, Any] = {}
    for root, name in sorted(_read(program)):
        if name:
            found.setdefault(root, {})[name] = scope.get(root, {}).get(name)
        else:
            found[root] = scope.get(root)
    return found if len(orjson.dumps(found)) <= RECORDED_BYTES else None


def unrecorded(program: cel.Program, recorded: Mapping[str, Any]) -> str | None:
    """Return an attribute that `program` reads and that was not recorded; None if there is none."""
    for root, name in sorted(_read(program)):
        if root not in recorded or (name and name not in recorded[root]):
            return f"{root}.{name}" if name else root
    return None


def _read(program: cel.Program) -> set[tuple[str, str]]:
    """Return the variables that are recorded for `program`, of `bundle` and `schedule` with the attribute."""
    found = set()
    for reference in program.references:
        name = reference.path[0] if reference.path else ""
        if reference.root == "bundle":
            found |= {("bundle", name)} - {("bundle", known) for known in _OF_THE_SPEC}
        elif reference.root == "schedule":
            found |= {("schedule", name)} & {("schedule", _HOLIDAY)}
        elif reference.root != "environment":
            found.add((reference.root, ""))
    return found


@dataclass(frozen=True, slots=True)
class RecordedContext:
    """The context of a gate from recorded values. Of these, only the soak grows."""

    bundle: Bundle | None
    environment: str
    approval: str
    calendar: Calendar
    recorded: Mapping[str, Any]
    at: datetime
    """The time of the evaluation that was recorded."""

    @property
    def soak(self) -> Soak:
        minutes = (self.recorded.get("bundle") or {}).get(_SOAK)
        if minutes is None:
            return Soak(unknown=f"bundle.{_SOAK} had no value")
        return Soak(times=(HealthyTime(since=self.at - timedelta(minutes=minutes)),))

    @property
    def approvals(self) -> Approvals | None:
        """Return None: approvals are recorded as data."""
        return None

    @property
    def metrics(self) -> MetricReadings | None:
        """Return None: metrics are recorded as data."""
        return None

    def scope(self, now: datetime) -> dict[str, Any]:
        found: dict[str, Any] = {name: value for name, value in self.recorded.items() if value is not None}
        found["schedule"] = self.calendar.schedule(now) | _present(self.recorded.get("schedule") or {})
        found["environment"] = {"name": self.environment, "approval": self.approval}
        if self.bundle is not None:
            given = GateContext(self.bundle, self.environment, self.approval).scope(now)["bundle"]
            fixed = {name: value for name, value in given.items() if name in _OF_THE_SPEC}
            found["bundle"] = fixed | _present(self.recorded.get("bundle") or {})
            if self.soak.is_known:
                found["bundle"][_SOAK] = self.soak.minutes(now)
        return found

    def absence(self, path: str) -> str:
        return f"{path} had no value"


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def evaluate_recorded(expression: str, context: RecordedContext, *, now: datetime) -> Answer:
    """Return the answer of a gate at `now`; a closed one where it reads what was not recorded."""
    if fault(expression) is None and (missing := unrecorded(cel.compile(expression), context.recorded)):
        return Answer(False, f"{missing} was not recorded", "error")
    return evaluate(expression, context, now=now)
