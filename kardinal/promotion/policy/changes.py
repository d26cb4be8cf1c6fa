"""Ask the gates of an environment about a change without a Bundle, such as the pull request of a person.

The current gate templates answer. A gate that reads only time and environment answers as it does for a promotion. A
gate that reads anything of a Bundle, such as its soak or its labels, cannot be evaluated: it holds the change, whatever
the rest of its expression says, and its reason tells the author to bring the change by a promotion. So missing data
never opens a gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kardinal import cel
from kardinal.promotion.policy.attributes import BUNDLE_ROOTS
from kardinal.promotion.policy.binding import Place
from kardinal.promotion.policy.calendar import Calendar
from kardinal.promotion.policy.context import ChangeContext
from kardinal.promotion.policy.evaluate import evaluate, fault
from kardinal.promotion.policy.matching import GateTemplate
from kardinal.promotion.policy.transition import next_transition

__all__ = ["ChangeAnswer", "ChangeQuestions", "binding_gates"]


class ChangeAnswer(NamedTuple):
    """The reason why a gate holds a change, empty if it does not hold it. Time alone changes the answer at `until`."""

    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    expression: str
    environment: str
    approval: str
    calendar: Calendar


class ChangeQuestions:
    """Answers the change gates of one moment, and computes each answer once.

    An expression that does not read the environment is evaluated once for all environments.
    """

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._answers: dict[_Question, ChangeAnswer] = {}

    def ask(self, gate: GateTemplate, place: Place, *, approval: str, calendar: Calendar) -> ChangeAnswer:
        """Return the answer of `gate`, which binds at `place`. Its expression must be compiled already."""
        expression = gate.spec.expression
        roots = _roots(expression)
        named = (place.environment, approval) if "environment" in roots else ("", "")
        context = ChangeContext(*named, calendar=calendar)
        question = _Question(expression, context.environment, context.approval, calendar)
        if question not in self._answers:
            self._answers[question] = _answer(expression, context, roots, now=self._now)
        answer = self._answers[question]
        return answer._replace(reason=f"gate {gate.name}: {answer.reason}") if answer.reason else answer


def binding_gates(templates: Iterable[GateTemplate], place: Place) -> Iterator[GateTemplate]:
    """Yield the gates that stand before an environment: the matching ones that do not permit skips."""
    return (gate for gate in templates if not gate.permits_skip and gate.applies_to(place))


def _answer(expression: str, context: ChangeContext, roots: frozenset[str], *, now: datetime) -> ChangeAnswer:
    if roots & BUNDLE_ROOTS:
        return ChangeAnswer("it decides about Bundles; bring the change by a promotion")
    answer = evaluate(expression, context, now=now)
    turn = None if answer.overran else next_transition(expression, context, now=now)
    return ChangeAnswer("" if answer.ready else answer.reason, turn)


def _roots(expression: str) -> frozenset[str]:
    """Return the variables that an expression reads; empty if the expression has a fault."""
    if fault(expression):
        return frozenset()
    return frozenset(reference.root for reference in cel.compile(expression).references)
