"""Problems of a sequence."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SequenceProblem"]


@dataclass(frozen=True, slots=True)
class SequenceProblem:
    """A problem of a sequence: the index of the step, the field relative to the environment, and the remedy."""

    index: int
    field: str
    message: str
