"""Ask the gates of an environment about a change that no Bundle brings, such as the pull request of a person.

The gates are today's templates. One that reads time and place alone decides about such a change as about a promotion.
One that reads anything of a Bundle, such as its soak or its labels, cannot be asked: it holds the change, whatever else
its expression says, and names the way that it decides about. So nothing opens for want of data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kardinal import cel
from kardinal.policy.binding import Place
from kardinal.policy.context import BUNDLE_ROOTS, ChangeContext
from kardinal.policy.evaluate import evaluate, fault
from kardinal.policy.matching import GateTemplate
from kardinal.policy.transition import next_transition

__all__ = ["ChangeAnswer", "ChangeQuestions", "binding_gates"]


class ChangeAnswer(NamedTuple):
    """Why a gate holds a change, empty when it does not; time alone changes that at `until`, if at all."""

    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    expression: str
    environment: str
    approval: str


class ChangeQuestions:
    """The answers at one moment; an expression that does not read the environment is evaluated once for all."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._answers: dict[_Question, ChangeAnswer] = {}

    def ask(self, gate: GateTemplate, place: Place, *, approval: str) -> ChangeAnswer:
        """Return the answer of a gate that binds at a place; its program is compiled."""
        expression = gate.spec.expression
        roots = _roots(expression)
        context = ChangeContext(place.environment, approval) if "environment" in roots else ChangeContext("", "")
        question = _Question(expression, context.environment, context.approval)
        if question not in self._answers:
            self._answers[question] = _answer(expression, context, roots, now=self._now)
        answer = self._answers[question]
        return answer._replace(reason=f"gate {gate.name}: {answer.reason}") if answer.reason else answer


def binding_gates(templates: Iterable[GateTemplate], place: Place) -> Iterator[GateTemplate]:
    """Yield the gates that stand before an environment."""
    return (gate for gate in templates if not gate.permits_skip and gate.applies_to(place))


def _answer(expression: str, context: ChangeContext, roots: frozenset[str], *, now: datetime) -> ChangeAnswer:
    if roots & BUNDLE_ROOTS:
        return ChangeAnswer("it decides about Bundles; bring the change by a promotion")
    answer = evaluate(expression, context, now=now)
    turn = None if answer.overran else next_transition(expression, context, now=now)
    return ChangeAnswer("" if answer.ready else answer.reason, turn)


def _roots(expression: str) -> frozenset[str]:
    """Return the variables that an expression reads; none of one that is evaluated to a fault."""
    if fault(expression):
        return frozenset()
    return frozenset(reference.root for reference in cel.compile(expression).references)
