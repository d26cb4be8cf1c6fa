"""Simulate a gate: its answers over a span of time in which nothing but time changes (pure).

The same functions answer that answer for the controller, so both give one answer for the same values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kardinal.promotion.policy.context import Attributes
from kardinal.promotion.policy.evaluate import evaluate
from kardinal.promotion.policy.transition import next_transition

__all__ = ["Interval", "all_open", "intervals"]

_LOOK_AHEAD = timedelta(days=7)
"""The time for which a transition is searched for at once; it is found up to a day later."""
_MOST = 1000
"""The most intervals of one simulation."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time in which a gate has one answer; `reason` is that of its start."""

    start: datetime
    end: datetime
    open: bool
    reason: str = ""


def intervals(expression: str, context: Attributes, *, start: datetime, end: datetime) -> list[Interval]:
    """Return the answers of a gate from `start` to `end`, each as long as it stays the same."""
    found: list[Interval] = []
    begin = start
    answer = evaluate(expression, context, now=start)
    for turn in _turns(expression, context, start, end):
        following = evaluate(expression, context, now=turn)
        if following.ready != answer.ready and len(found) < _MOST:
            found.append(Interval(begin, turn, answer.ready, answer.reason))
            begin = turn
            answer = following
    return [*found, Interval(begin, end, answer.ready, answer.reason)]


def all_open(gates: Sequence[Sequence[Interval]], *, start: datetime, end: datetime) -> list[Interval]:
    """Return when all gates are open at once, and when one of them is closed; without gates it is always open."""
    moments = sorted({start, *(each.start for gate in gates for each in gate)})
    found: list[Interval] = []
    for begin, finish in zip(moments, [*moments[1:], end], strict=True):
        is_open = all(any(each.open and each.start <= begin < each.end for each in gate) for gate in gates)
        if found and found[-1].open == is_open:
            found[-1] = Interval(found[-1].start, finish, is_open)
        else:
            found.append(Interval(begin, finish, is_open))
    return found


def _turns(expression: str, context: Attributes, start: datetime, end: datetime) -> Iterator[datetime]:
    now = start
    while now < end:
        turn = next_transition(expression, context, now=now)
        now = turn if turn is not None else now + _LOOK_AHEAD
        if now < end:
            yield now
