"""The problems of a Graph, as values, so that all of them are reported at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kardinal.objects.errors import KardinalError

__all__ = ["GraphError", "GraphProblem", "ProblemReason"]

ProblemReason = Literal["DeclarationError", "ExpressionError", "DependencyError", "NotAdmitted"]

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class GraphProblem:
    """One problem to fix, at the field `path` of the Graph. `node` is the id of the node, where it is known."""

    reason: ProblemReason
    path: str
    message: str
    node: str | None = None

    def __str__(self) -> str:
        where = f"{self.path} (node {self.node})" if self.node else self.path
        return f"{where}: {self.message}"


class GraphError(KardinalError):
    """A Graph that cannot be compiled."""

    def __init__(self, problems: Sequence[GraphProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(_summary(self.problems))

    @property
    def reason(self) -> ProblemReason:
        return self.problems[0].reason


def _summary(problems: Sequence[GraphProblem]) -> str:
    lines = [str(problem) for problem in problems[:_SHOWN]]
    more = len(problems) - _SHOWN
    return "; ".join([*lines, f"and {more} more"] if more > 0 else lines)
