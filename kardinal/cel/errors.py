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

from typing import Literal

__all__ = ["Absent", "CompileError", "CpuTimeExceeded", "EvaluationError", "FailureKind", "Fault"]

FailureKind = Literal["type", "conversion", "arithmetic", "limit", "unrepresentable"]


class CompileError(Exception):
    """An expression that can never be evaluated; `position` is an offset into its text."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(f"{message} (at column {position + 1})")
        self.position = position
        self.message = message


class CpuTimeExceeded(Exception):
    """An evaluation that took ten times the CPU time of its budget; it has no outcome, and may be tried again."""

    def __init__(self) -> None:
        super().__init__("an expression took far more CPU time than its steps; it is evaluated again later")


class EvaluationError(Exception):
    """An evaluation that yields no value."""


class Absent(EvaluationError):
    """The expression reads `path`, which is not in scope; `key` is the first missing field of it."""

    def __init__(self, path: str, key: object = None) -> None:
        super().__init__(path)
        self.path = path
        self.key = key


class Fault(EvaluationError):
    """The data is there but the expression cannot be computed from it."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
