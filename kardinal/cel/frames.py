"""The state of one evaluation: its variables and its budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kardinal.cel.budget import Budget
from kardinal.cel.errors import Fault
from kardinal.cel.values import type_name

__all__ = ["Evaluate", "Frame", "not_boolean"]


@dataclass(slots=True)
class Frame:
    """The variables of one evaluation."""

    scope: Mapping[str, object]
    now: datetime
    budget: Budget
    bound: dict[str, object] = field(default_factory=dict)


Evaluate = Callable[[Frame], object]


def not_boolean(what: str, value: object, position: int) -> Fault:
    return Fault("type", f"`{what}` needs bool, not {type_name(value)}", position)
