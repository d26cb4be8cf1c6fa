"""Find the moment at which time alone will change a gate's answer.

Every moment at which something the expression reads can change is tried in order; the first at which the answer differs
is the one. The schedule changes on the hour and repeats after a week. A soak crosses a threshold when it reaches one of
the numbers in the expression. For `now()` the compiled program names the moment itself.

The search may miss a turn, where a threshold is computed rather than written down; the reconciler therefore looks again
every recheckInterval whatever is said here. It never names a moment at which the answer stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from kardinal import cel
from kardinal.policy.comparisons import numbers
from kardinal.policy.context import SOAK, Context
from kardinal.policy.evaluate import evaluate, fault

__all__ = ["next_transition"]

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_INSTANT = timedelta(microseconds=1)
_LONGEST_SOAK = 366 * 24 * 60
"""Minutes; a larger number in an expression is no threshold that anybody waits for."""


def next_transition(expression: str, context: Context, *, now: datetime) -> datetime | None:
    """Return the first moment after `now` at which the answer is another one, if only time passes."""
    if fault(expression):
        return None
    ready = evaluate(expression, context, now=now).ready
    for moment in sorted(set(_moments(expression, context, now))):
        if moment > now and evaluate(expression, context, now=moment).ready != ready:
            return moment
    return None


def _moments(expression: str, context: Context, now: datetime) -> Iterator[datetime]:
    program = cel.compile(expression)
    reads = {str(reference) for reference in program.references}
    yield from _schedule(reads, now)
    if SOAK in reads and context.soak.since is not None:
        for threshold in numbers(expression):
            if 0 <= threshold <= _LONGEST_SOAK:
                reached = context.soak.since + timedelta(minutes=threshold)
                yield reached
                yield reached + _INSTANT
                # The hour that the expression waits for may come only after the soak is reached.
                yield from _schedule(reads, reached)
    if (flip := program.next_flip(context.scope(now), now=now)) is not None:
        yield flip
        yield flip + _INSTANT


def _schedule(reads: set[str], now: datetime) -> Iterator[datetime]:
    """Yield the hours or days at which a schedule that is read can change, as far as it takes to see all its values."""
    hourly = "schedule.hour" in reads or "schedule" in reads
    daily = bool(reads & {"schedule.isWeekend", "schedule.dayOfWeek", "schedule"})
    if not hourly and not daily:
        return
    start = (
        now.replace(minute=0, second=0, microsecond=0)
        if hourly
        else now.replace(hour=0, minute=0, second=0, microsecond=0)
    )
    step = _HOUR if hourly else _DAY
    count = (7 if daily else 1) * (24 if hourly else 1)
    for index in range(1, count + 1):
        yield start + index * step
