"""The errors of compiling and evaluating an expression.

    CompileError          the text is wrong; its author fixes it
    EvaluationError       inside one evaluation, never leaves this package
    ├── Absent            data is missing so far
    └── Fault             the data does not fit the expression, or the evaluation exceeds its budget
    CpuTimeExceeded       the back-stop stopped the evaluation: it has no outcome, and is tried again

Messages contain positions, operators and type names, and never a value: an expression may read a Secret, and messages
end up in status, events and logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Absent", "CompileError", "CpuTimeExceeded", "EvaluationError", "FailureKind", "Fault", "Location"]

FailureKind = Literal["type", "conversion", "arithmetic", "limit", "unrepresentable"]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the text of an expression; lines and columns are counted from 1, columns in characters."""

    line: int
    column: int
    in_one_line: bool = True
    """Whether the expression has one line, so that the column says everything."""

    @classmethod
    def of(cls, source: str, position: int) -> Location:
        """Return the place of an offset into `source`."""
        line = source.count("\n", 0, position) + 1
        return cls(line, position - source.rfind("\n", 0, position), "\n" not in source)

    def __str__(self) -> str:
        return f"column {self.column}" if self.in_one_line else f"line {self.line}, column {self.column}"

    def shown(self, source: str) -> str:
        """Return the line of `source` with a caret below the place."""
        line = source.split("\n")[self.line - 1].replace("\t", " ").rstrip("\r")
        return f"{line}\n{' ' * (self.column - 1)}^"


class CompileError(Exception):
    """An expression that can never be evaluated; `position` is an offset into its text."""

    def __init__(self, position: int, message: str, source: str = "") -> None:
        self.position = position
        self.message = message
        self.location = Location.of(source, position)
        super().__init__(f"{message} (at {self.location})")


class CpuTimeExceeded(Exception):
    """An evaluation that took ten times the CPU time of its budget; it has no outcome, and may be tried again."""

    def __init__(self) -> None:
        super().__init__("an expression took far more CPU time than its steps; it is evaluated again later")


class EvaluationError(Exception):
    """An evaluation that yields no value."""


class Absent(EvaluationError):
    """The expression reads `path`, which is not in scope; `key` is the first missing field of it."""

    def __init__(self, path: str, key: object = None, position: int | None = None) -> None:
        super().__init__(path)
        self.path = path
        self.key = key
        self.position = position


class Fault(EvaluationError):
    """The data is there but the expression cannot be computed from it.

    `position` is the offset of the operation, unless a function raises it: the evaluation adds its call.
    """

    def __init__(self, kind: FailureKind, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.position = position
