"""The *When lists of a node: every entry is one expression, and all of them must hold.

An entry holds when it is true, or the text "true". Whatever else an evaluation may yield is a reason why it does not;
what follows from that differs by list, so the reason is kept apart: false, not known yet, or wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from kardinal import cel
from kardinal.cel.scanner import Expression, Unscannable, scan
from kardinal.graph.errors import Problem
from kardinal.graph.evaluator import Evaluator
from kardinal.graph.programs import NO_PROGRAMS, Programs, program_of

__all__ = ["Condition", "Unmet", "compile_condition", "first_unmet", "next_flip"]


@dataclass(frozen=True, slots=True)
class Condition:
    program: cel.Program

    @property
    def source(self) -> str:
        return self.program.source.strip()

    def mentions(self, node: str) -> bool:
        return any(reference.root == node for reference in self.program.references)


@dataclass(frozen=True, slots=True)
class Unmet:
    """The first condition of a list that does not hold; `missing` and `failure` say why it is not simply false.

    As text, false and missing read alike: an object that slowly fills its status must not rewrite that of its Graph.
    """

    expression: str
    missing: str | None = None
    failure: str | None = None

    def __str__(self) -> str:
        return f"{self.expression}: {self.failure}" if self.failure else f"waiting for {self.expression}"


def compile_condition(text: str, *, path: str, node: str, programs: Programs = NO_PROGRAMS) -> Condition | Problem:
    """Return the condition in `text`, which is one expression; `${}` around it may be left out."""
    try:
        match scan(text) if "${" in text else [Expression(text)]:
            case [Expression(source=source)]:
                return Condition(program_of(source, programs))
            case _:
                return Problem("ExpressionError", path, "must be one expression, with nothing around its ${}", node)
    except (Unscannable, cel.CompileError) as error:
        return Problem("ExpressionError", path, str(error), node)


def first_unmet(conditions: Iterable[Condition], evaluator: Evaluator) -> Unmet | None:
    """Return the first condition that does not hold, or None when all do."""
    for condition in conditions:
        match evaluator.evaluate(condition.program):
            case cel.Value(json=True | "true"):
                continue
            case cel.Value(json=False | "false"):
                return Unmet(condition.source)
            case cel.Value():
                return Unmet(condition.source, failure="the result is neither true nor false")
            case cel.Missing(path=path):
                return Unmet(condition.source, missing=path)
            case cel.Failed(message=message):
                return Unmet(condition.source, failure=message)
    return None


def next_flip(conditions: Iterable[Condition], evaluator: Evaluator) -> datetime | None:
    """Return when time alone may next change what the conditions say."""
    flips = (evaluator.next_flip(condition.program) for condition in conditions)
    return min((flip for flip in flips if flip is not None), default=None)
