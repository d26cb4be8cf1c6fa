"""The answer of a gate and the sentence that explains it (pure).

A gate is open only while its expression is true. Everything else closes it: a syntax error, missing data, a result that
is not a boolean. The reason then tells the author or the reader how to mend it. Reasons contain the values that were
read, and never an error text of the CEL library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal

from kardinal import cel
from kardinal.objects.text import cut
from kardinal.promotion.policy.approvals import APPROVALS
from kardinal.promotion.policy.attributes import trusts_creator, unserved, withheld
from kardinal.promotion.policy.calendar import schedule_fault, windows
from kardinal.promotion.policy.comparisons import Comparison, comparisons, label_mistake
from kardinal.promotion.policy.context import SOAK, Attributes

__all__ = ["VALUE_LIMIT", "Answer", "evaluate", "fault", "skip_warning"]

REASON_LIMIT = 500
VALUE_LIMIT = 64
APPROVERS_LIMIT = 320

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FAULTS: cel.SourceCache[str] = cel.SourceCache(characters=1 << 20)
"""The fault of each expression, or empty text if it is valid.

An invalid expression is not parsed again for every answer.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a gate with its reason.

    A gate with the result `error` is closed because it could not be evaluated.
    """

    ready: bool
    reason: str
    result: Literal["pass", "fail", "error"]
    overran: bool = False
    """Whether the evaluation is too expensive with the current data, so that trying again gives the same result."""
    values: tuple[tuple[str, str], ...] = ()
    """The values that were read, as pairs of an attribute and text: `("schedule.hour", "20")`."""


def evaluate(expression: str, context: Attributes, *, now: datetime) -> Answer:
    """Return the answer of the gate at `now`."""
    if broken := fault(expression):
        return _error(broken)
    program = cel.compile(expression)
    scope = context.scope(now)
    if unread := withheld(program, scope):
        return _error(f"{unread} is not read here")
    if unknown := context.calendar.problem(program):
        return _error(unknown)
    hints = _hints(comparisons(expression))
    match program.evaluate(scope, now=now):
        case cel.Value(json=True):
            values = tuple(_observed(program, scope))
            return Answer(True, _shown(values, expression, otherwise="the expression is true"), "pass", values=values)
        case cel.Value(json=False):
            values = tuple(_observed(program, scope))
            seen = _shown(values, expression, otherwise="the expression is false")
            return Answer(False, _limited("; ".join([seen, *hints])), "fail", values=values)
        case cel.Missing(path=path):
            return _error("; ".join([context.absence(_dotted(path)), *hints]))
        case cel.Failed(message=message) as failed if failed.overran:
            return replace(_error(f"{message}; it is evaluated again once it or its Bundle has changed"), overran=True)
        case cel.Failed(message=message):
            return _error("; ".join([message, *hints]))
    return _error("the expression is not a condition: it must be true or false")


def fault(expression: str) -> str | None:
    """Return the problem of an expression that no Bundle can satisfy, such as a syntax error; None if there is none."""
    known = _FAULTS.get(expression)
    if known is None:
        known = _fault(expression)
        _FAULTS.put(expression, known)
    return known or None


def _fault(expression: str) -> str:
    try:
        program = cel.compile(expression)
    except cel.CompileError as error:
        return f"the expression is not valid CEL: {error}"
    return unserved(program) or schedule_fault(cel.syntax_of(expression)) or ""


def skip_warning(expression: str) -> str | None:
    """Return a warning about an expression that permits skips and trusts values that any creator can write."""
    try:
        chosen = trusts_creator(cel.compile(expression))
    except cel.CompileError:
        return None
    if chosen is None:
        return None
    return (
        f"{chosen} says what the creator of a Bundle likes it to say: "
        "read what its token may skip, as in `environment.name in bundle.attested.maySkip`"
    )


def _dotted(path: str) -> str:
    """Return the path of a chain of fields with dots alone: `upstream.eu-1.version` for `upstream["eu-1"].version`."""
    references = cel.compile(path).references
    return str(next(iter(references))) if len(references) == 1 else path


def _error(reason: str) -> Answer:
    return Answer(False, _limited(reason), "error")


def _hints(found: Iterable[Comparison]) -> list[str]:
    """Return the comparisons that keep a gate closed forever, mostly of a label with a literal that is not text."""
    return [hint for comparison in found if comparison.operator == "==" and (hint := label_mistake(comparison))]


def _shown(observed: Iterable[tuple[str, str]], expression: str, *, otherwise: str) -> str:
    limits: dict[str, list[str]] = {}
    for comparison in comparisons(expression):
        if _is_number(comparison.literal):
            limits.setdefault(comparison.path, []).append(f"{comparison.operator} {comparison.literal_text}")
    parts = []
    for path, value in observed:
        limit = f" (threshold: {', '.join(limits[path])})" if path in limits else ""
        parts.append(f"{path} = {value}{limit}")
    return _limited(", ".join(parts) or otherwise)


def _observed(program: cel.Program, scope: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the values that were read; of the list of approvals the people who approved."""
    for path, value in program.observed(scope):
        yield path, _text(path, value)
    if any(reference.root == APPROVALS for reference in program.references):
        people = [approval["approver"] for approval in scope.get(APPROVALS, ())]
        yield APPROVALS, cut(", ".join(people), APPROVERS_LIMIT) or "none"
    for window in windows(program.source):
        asked = f'schedule.inWindow("{window.text}")'
        outcome = cel.compile(asked).evaluate(scope, now=_EPOCH)
        if isinstance(outcome, cel.Value):
            yield asked, _text(asked, outcome.json)


def _text(path: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        # A soak of 29.999 minutes must not read as 30 beside a threshold of 30.
        return f"{math.floor(value * 100) / 100:g}" if path == SOAK else f"{value:g}"
    if isinstance(value, str):
        return cut(value, VALUE_LIMIT)
    return str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _limited(reason: str) -> str:
    return cut(reason, REASON_LIMIT)
