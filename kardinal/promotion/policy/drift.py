"""`targetDrift` in gates: how it is called, and for how long what an agent has seen counts."""

from __future__ import annotations

from datetime import datetime, timedelta

from kardinal.objects.conditions import format_time
from kardinal.promotion.api.promotion_step import TargetDrift

__all__ = ["RENEWED_EVERY", "TARGET_DRIFT", "known_drift"]

TARGET_DRIFT = "targetDrift"
"""The variable."""

RENEWED_EVERY = timedelta(minutes=5)
"""The interval at which an agent writes what it sees, even if it sees the same."""


def known_drift(seen: TargetDrift | None, environment: str, *, now: datetime) -> bool | str:
    """Return whether the tool of an environment has something left to apply, or why that is unknown.

    What an agent has not renewed for two intervals no longer counts.
    """
    if seen is None:
        return f"no agent has looked at {environment} yet"
    if now - seen.seen_at > 2 * RENEWED_EVERY:
        return f"no agent has looked at {environment} since {format_time(seen.seen_at)}"
    return seen.message if seen.unreconciled is None else seen.unreconciled
