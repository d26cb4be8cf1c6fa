"""Conditions of a status as plain JSON, by the rules of `metav1.Condition`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from kardinal.objects.resource_type import JsonObject
from kardinal.objects.text import cut

__all__ = ["MESSAGE_LIMIT", "Truth", "find_condition", "format_time", "set_condition"]

Truth = Literal["True", "False", "Unknown"]

MESSAGE_LIMIT = 1024
"""The most characters of a condition message; the rest is cut."""


def format_time(moment: datetime) -> str:
    """Return the moment by RFC 3339 in UTC, such as `2026-03-03T14:30:15Z`; a fraction only if there is one."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def find_condition(status: Mapping[str, Any], type_: str) -> JsonObject | None:
    """Return the condition of that type in a status; None when there is none."""
    return next((entry for entry in status.get("conditions") or () if entry.get("type") == type_), None)


def set_condition(
    conditions: Iterable[JsonObject],
    type_: str,
    status: Truth,
    *,
    reason: str,
    message: str = "",
    now: datetime,
    observed_generation: int | None = None,
) -> list[JsonObject]:
    """Return the conditions with the one of `type_` set; its `lastTransitionTime` changes only with its `status`."""
    kept = list(conditions)
    before = find_condition({"conditions": kept}, type_)
    unchanged = before is not None and before.get("status") == status
    after: JsonObject = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": cut(message, MESSAGE_LIMIT),
        "lastTransitionTime": before["lastTransitionTime"] if unchanged and before else format_time(now),
    }
    if observed_generation is not None:
        after["observedGeneration"] = observed_generation
    if before is None:
        return [*kept, after]
    return [after if entry is before else entry for entry in kept]
