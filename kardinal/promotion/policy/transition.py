"""Find the moment at which time alone will change the answer of a gate.

Every moment at which a value of the expression can change is tried in order; the first moment with a different answer
is the result. The calendar knows when the schedule changes. A soak crosses a threshold when it reaches a number in the
expression. An approval counts until it expires. For `now()` the compiled program returns the moment itself.

The search can miss a change: a threshold may be computed instead of written as a number, or the evaluations together
may exceed the budget of a single one. It says so, and the reconciler then evaluates again every recheckInterval. The
search never returns a moment at which the answer does not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from kardinal import cel
from kardinal.promotion.metrics.readings import METRICS
from kardinal.promotion.policy.calendar import windows
from kardinal.promotion.policy.comparisons import comparisons, numbers
from kardinal.promotion.policy.context import SOAK, Attributes
from kardinal.promotion.policy.evaluate import fault

__all__ = ["NextTurn", "next_transition", "search_transition"]

_INSTANT = timedelta(microseconds=1)
_LONGEST_SOAK = 366 * 24 * 60
"""In minutes. A larger number in an expression is not tried as a threshold."""
_THRESHOLDS = 16
"""The largest number of thresholds to try per expression, smallest first."""
_SCOPE_STEPS = 100
"""The cost, in steps of the CEL budget, of computing the variables at one moment."""


@dataclass(frozen=True, slots=True)
class NextTurn:
    """The result of a search: the moment, and whether it is certain that the answer does not change before.

    Without a moment, that is certain for a week.
    """

    at: datetime | None
    certain: bool


def search_transition(expression: str, context: Attributes, *, now: datetime) -> NextTurn:
    """Search for the first moment after `now` with a different answer if only time passes."""
    if fault(expression):
        return NextTurn(None, certain=True)
    program = cel.compile(expression)
    certain = _is_foreseeable(program)
    budget = cel.Budget()
    try:
        ready = _ready(program, context, now, budget)
        for moment in sorted(set(_moments(program, context, now, budget))):
            if moment > now and _ready(program, context, moment, budget) != ready:
                return NextTurn(moment, certain)
    except _TooDear:
        return NextTurn(None, certain=False)
    return NextTurn(None, certain)


def next_transition(expression: str, context: Attributes, *, now: datetime) -> datetime | None:
    """Return the first moment after `now` with a different answer if only time passes; None if there is none."""
    return search_transition(expression, context, now=now).at


def _is_foreseeable(program: cel.Program) -> bool:
    """Return whether all moments at which time can change the value of `program` are tried.

    Metrics have other values at each query, no event tells of new holidays, and the threshold of a soak is known if it
    is compared with a number.
    """
    read = [str(reference) for reference in program.references]
    if program.polled or "schedule.isHoliday" in read or any(name.startswith(METRICS) for name in read):
        return False
    soaks = program.source.count(SOAK.partition(".")[2])
    found = comparisons(program.source)
    limits = [each.literal for each in found if each.path == SOAK and isinstance(each.literal, int | float)]
    return soaks == len(limits) and len(numbers(program.source)) <= _THRESHOLDS


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
