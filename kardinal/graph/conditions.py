"""The *When lists of a node: every entry is one expression, and all of them must hold.

An entry holds when its value is true or the text "true". Otherwise there are three reasons, kept apart because each
list reacts to them differently: the value is false, the data is missing so far, or the evaluation failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from kardinal import cel
from kardinal.cel.scanner import Expression, Unscannable, scan
from kardinal.graph.errors import GraphProblem
from kardinal.graph.evaluator import Evaluator
from kardinal.graph.programs import NO_PROGRAMS, Programs, program_of

__all__ = ["NodeCondition", "Unmet", "compile_condition", "first_unmet", "next_flip"]


@dataclass(frozen=True, slots=True)
class NodeCondition:
    program: cel.Program

    @property
    def source(self) -> str:
        return self.program.source.strip()

    def mentions(self, node: str) -> bool:
        return node in self.program.roots

    def reads_whole(self, node: str) -> bool:
        """Return whether the condition reads a node itself, not a field of it: `size(quotas)`, `quotas.all(q, …)`."""
        return any(reference.root == node and not reference.path for reference in self.program.references)


@dataclass(frozen=True, slots=True)
class Unmet:
    """The first condition of a list that does not hold.

    `missing` names the data that is not there yet, `failure` is the error of the evaluation; without both, the value is
    false. As text, "false" and "missing" read alike: while an object slowly fills its status, the status of its Graph
    must not be rewritten each time.
    """

    expression: str
    missing: str | None = None
    failure: str | None = None

    def __str__(self) -> str:
        return f"{self.expression}: {self.failure}" if self.failure else f"waiting for {self.expression}"


def compile_condition(
    text: str, *, path: str, node: str, programs: Programs = NO_PROGRAMS
) -> NodeCondition | GraphProblem:
    """Return the condition in `text`, which is one expression; `${}` around it may be left out."""
    try:
        match scan(text) if "${" in text else [Expression(text)]:
            case [Expression(source=source)]:
                return NodeCondition(program_of(source, programs))
            case _:
                return GraphProblem(
                    "ExpressionError", path, "must be one expression, with nothing around its ${}", node
                )
    except (Unscannable, cel.CompileError) as error:
        return GraphProblem("ExpressionError", path, str(error), node)


def first_unmet(conditions: Iterable[NodeCondition], evaluator: Evaluator) -> Unmet | None:
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


def next_flip(conditions: Iterable[NodeCondition], evaluator: Evaluator) -> datetime | None:
    """Return the next time at which a condition may change without a change of data."""
    flips = (evaluator.next_flip(condition.program) for condition in conditions)
    return min((flip for flip in flips if flip is not None), default=None)
