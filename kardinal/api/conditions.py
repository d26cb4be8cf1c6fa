"""Setting one condition of a status, by the rules of `metav1.Condition`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from kardinal.api.base import Condition

__all__ = ["MESSAGE_LIMIT", "set_condition"]

MESSAGE_LIMIT = 1024
"""Characters of a condition message that are kept."""


def set_condition(
    conditions: Iterable[Condition],
    type_: str,
    status: Literal["True", "False", "Unknown"],
    *,
    reason: str,
    message: str = "",
    now: datetime,
    observed_generation: int | None = None,
) -> tuple[Condition, ...]:
    """The conditions with `type_` set; `lastTransitionTime` moves only when its status does."""
    kept = tuple(conditions)
    before = next((condition for condition in kept if condition.type == type_), None)
    since = before.last_transition_time if before and before.status == status else now
    if len(message) > MESSAGE_LIMIT:
        message = message[: MESSAGE_LIMIT - 1] + "…"
    after = Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=since,
        observed_generation=observed_generation,
    )
    if before is None:
        return (*kept, after)
    return tuple(after if condition.type == type_ else condition for condition in kept)
