"""Conditions of a status as models; the rules are in `kardinal.objects.conditions`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kardinal.models.base import Condition
from kardinal.objects import conditions as plain
from kardinal.objects.conditions import Truth

__all__ = ["set_condition"]


def set_condition(
    conditions: Iterable[Condition],
    type_: str,
    status: Truth,
    *,
    reason: str,
    message: str = "",
    now: datetime,
    observed_generation: int | None = None,
) -> tuple[Condition, ...]:
    """Return the conditions with `type_` set.

    `lastTransitionTime` changes only if the status of the condition changes.
    """
    changed = plain.set_condition(
        [condition.to_json() for condition in conditions],
        type_,
        status,
        reason=reason,
        message=message,
        now=now,
        observed_generation=observed_generation,
    )
    return tuple(Condition.model_validate(condition) for condition in changed)
