"""The moments at which time alone changes the result of an expression.

`timestamp(g.status.lastEvaluatedAt) > now() - duration("10m")` is true until a moment that can be computed: both
sides are sums and differences of now() and of values that do not change, so the difference at two instants gives its
slope, and the slope the crossing. Parts of a day have no such slope, but change on the hour, or on the minute, alone:
`now().getHours("Europe/Zurich") >= 9` is tried at the coming quarters of an hour, `SEARCHED` of them at most. What is
neither (`[now(), t].max() > u`) is looked at again after a fixed interval.

A moment returned is an occasion to evaluate again, not a promise that the answer differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from kardinal.cel.budget import Budget
from kardinal.cel.errors import Absent, Fault
from kardinal.cel.evaluation import Evaluate, Frame, build
from kardinal.cel.functions import CLOCK_FUNCTIONS
from kardinal.cel.moments import ZONES
from kardinal.cel.references import is_volatile
from kardinal.cel.syntax import Call, Comprehension, Constant, Node, children
from kardinal.cel.weights import weight

__all__ = ["RECHECK_INTERVAL", "SEARCHED", "Threshold", "thresholds"]

RECHECK_INTERVAL = timedelta(minutes=1)
"""The interval between evaluations of an expression whose dependence on time has no closed form."""

SEARCHED = 32
"""The most moments at which one search tries an expression: 8 hours of quarters of an hour."""

_QUARTER = timedelta(minutes=15)
"""All time zones have been so many quarters of an hour from UTC since 1972, also where the clocks change."""

_PARTS = {
    **dict.fromkeys(("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"), _QUARTER),
    "getHours": _QUARTER,
    "getMinutes": timedelta(minutes=1),
}
"""The functions of a moment whose result changes at multiples of a unit alone."""

_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_SUMS = frozenset({"+", "-", "timestamp", "duration", "dyn"})
"""Functions whose result grows with now() as their arguments do."""

_PROBE = timedelta(hours=1)
_RESOLUTION = timedelta(microseconds=1)
_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True)
class Threshold:
    """One part of an expression that depends on time.

    `sides` are those of a comparison of sums. With a `unit` instead, the part can change at multiples of it alone, of
    which `after` does not know the first; without either it can change at any moment.
    """

    sides: tuple[Evaluate, Evaluate] | None = None
    weight: int = 0
    """The steps of both instants."""
    unit: timedelta | None = None

    def after(self, scope: Mapping[str, object], now: datetime, budget: Budget) -> datetime | None:
        """Return the first moment after `now` at which the comparison can turn.

        Where the computation would exceed the budget, that is `RECHECK_INTERVAL` after `now`.
        """
        if self.sides is None:
            return now + RECHECK_INTERVAL
        try:
            budget.spend(self.weight)
            gap = self._gap(Frame(scope, now, budget))
            later = self._gap(Frame(scope, now + _PROBE, budget))
        except Fault as error:
            return now + RECHECK_INTERVAL if error.kind == "limit" else None
        except (Absent, OverflowError):
            return None
        if gap is None or later is None:
            return now + RECHECK_INTERVAL
        slope = (later - gap) // _PROBE
        if slope == 0:
            return None
        # Rounded up: a crossing between two microseconds shows at the second one.
        wait = -(gap // slope)
        # Strict and inclusive comparisons turn at the crossing or just behind it; the caller sees both.
        if wait > _ZERO:
            return now + wait
        return now + _RESOLUTION if wait == _ZERO else None

    def _gap(self, frame: Frame) -> timedelta | None:
        assert self.sides is not None  # noqa: S101 - checked by the only caller
        left, right = (side(frame) for side in self.sides)
        if isinstance(left, datetime) and isinstance(right, datetime):
            return left - right
        if isinstance(left, timedelta) and isinstance(right, timedelta):
            return left - right
        return None


def thresholds(node: Node) -> Iterator[Threshold]:
    """Yield the comparisons of `node` that depend on now(), and a catch-all for any other use of it."""
    if not is_volatile(node):
        return
    match node:
        case Call(function=function, arguments=(left, right)) if function in _COMPARISONS:
            if _is_sum(left) and _is_sum(right):
                yield Threshold((build(left), build(right)), weight=2 * weight(node))
            elif function in ("==", "!="):
                # Both sides may be conditions, which have thresholds of their own.
                yield from thresholds(left)
                yield from thresholds(right)
            else:
                yield Threshold(unit=_unit(node))
        case Call(function=function) if function in CLOCK_FUNCTIONS or function in _PARTS:
            yield Threshold(unit=_unit(node))
        case Comprehension():
            yield Threshold(unit=_unit(node))
        case _:
            for child in children(node):
                yield from thresholds(child)


def _is_sum(node: Node) -> bool:
    """Return whether a value is a sum of now() and of what does not change with time."""
    match node:
        case Call(function=function) if function in CLOCK_FUNCTIONS:
            return True
        case Call(function=function, arguments=arguments) if function in _SUMS:
            return all(map(_is_sum, arguments))
    return not is_volatile(node)


def _unit(node: Node) -> timedelta | None:
    """Return the unit at whose multiples alone a value that depends on time can change; None if at any moment."""
    match node:
        case Call(function=part, arguments=(Call(function=clock), *zone)) if (
            part in _PARTS and clock in CLOCK_FUNCTIONS
        ):
            return _PARTS[part] if all(map(_is_named, zone)) else None
        case Call(function=function) if function in CLOCK_FUNCTIONS:
            return None
    units = [_unit(child) for child in children(node) if is_volatile(child)]
    known = [unit for unit in units if unit is not None]
    return min(known) if len(known) == len(units) else None


def _is_named(zone: Node) -> bool:
    """Return whether a time zone is written down by its name. One by its offset may be 02:07 from UTC."""
    return isinstance(zone, Constant) and isinstance(zone.value, str) and zone.value in ZONES
