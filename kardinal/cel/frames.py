"""The state of one evaluation: its variables and its budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kardinal.cel.errors import Fault
from kardinal.cel.values import type_name

__all__ = ["STEP_LIMIT", "Evaluate", "Frame", "not_boolean"]

STEP_LIMIT = 100_000
"""Syntax nodes that the comprehensions of one evaluation may visit."""


@dataclass(slots=True)
class Frame:
    """The variables of one evaluation."""

    scope: Mapping[str, object]
    now: datetime
    bound: dict[str, object] = field(default_factory=dict)
    steps: int = 0


Evaluate = Callable[[Frame], object]


def not_boolean(what: str, value: object, position: int) -> Fault:
    return Fault("type", f"`{what}` needs bool, not {type_name(value)} (at column {position + 1})")
