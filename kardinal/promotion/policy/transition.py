"""Find the moment at which time alone will change the answer of a gate.

Every moment at which a value of the expression can change is tried in order; the first moment with a different answer
is the result. The calendar knows when the schedule changes. A soak crosses a threshold when it reaches a number in the
expression. An approval counts until it expires. For `now()` the compiled program returns the moment itself.

The search can miss a change: a threshold may be computed instead of written as a number, or the evaluations together
may exceed the budget of a single one. So the reconciler evaluates again every recheckInterval in any case. The search
never returns a moment at which the answer does not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kardinal import cel
from kardinal.promotion.policy.calendar import windows
from kardinal.promotion.policy.comparisons import numbers
from kardinal.promotion.policy.context import SOAK, Attributes
from kardinal.promotion.policy.evaluate import fault

__all__ = ["next_transition"]

_INSTANT = timedelta(microseconds=1)
_LONGEST_SOAK = 366 * 24 * 60
"""In minutes. A larger number in an expression is not tried as a threshold."""
_THRESHOLDS = 16
"""The largest number of thresholds to try per expression, smallest first."""
_SCOPE_STEPS = 100
"""The cost, in steps of the CEL budget, of computing the variables at one moment."""


def next_transition(expression: str, context: Attributes, *, now: datetime) -> datetime | None:
    """Return the first moment after `now` with a different answer if only time passes; None if there is none."""
    if fault(expression):
        return None
    program = cel.compile(expression)
    budget = cel.Budget()
    try:
        ready = _ready(program, context, now, budget)
        for moment in sorted(set(_moments(program, context, now, budget))):
            if moment > now and _ready(program, context, moment, budget) != ready:
                return moment
    except _TooDear:
        return None
    return None


class _TooDear(Exception):
    """The search has used up its budget."""


def _ready(program: cel.Program, context: Attributes, now: datetime, budget: cel.Budget) -> bool:
    try:
        budget.spend(_SCOPE_STEPS)
    except cel.Fault:
        raise _TooDear from None
    outcome = program.evaluate(context.scope(now), now=now, budget=budget)
    if isinstance(outcome, cel.Failed) and outcome.overran:
        raise _TooDear
    return outcome == cel.Value(True)


def _moments(program: cel.Program, context: Attributes, now: datetime, budget: cel.Budget) -> Iterator[datetime]:
    reads = {str(reference) for reference in program.references}
    asked = windows(program.source)
    calendar = context.calendar
    yield from calendar.moments(reads, asked, now)
    if SOAK in reads:
        possible = sorted(number for number in numbers(program.source) if 0 <= number <= _LONGEST_SOAK)
        for threshold in possible[:_THRESHOLDS]:
            reached = context.soak.reaches(threshold)
            if reached is None:
                continue
            yield reached
            yield reached + _INSTANT
            # The hour that the expression waits for may come only after the soak is reached.
            yield from calendar.moments(reads, asked, reached)
    if context.approvals is not None:
        yield from context.approvals.ends()
    if context.metrics is not None:
        for moment in context.metrics.moments(sorted(numbers(program.source))[:_THRESHOLDS]):
            yield moment
            yield moment + _INSTANT
    if (flip := program.next_flip(context.scope(now), now=now, budget=budget)) is not None:
        yield flip
        yield flip + _INSTANT
