"""Compute the rest of a wait on the monotonic clock."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["remaining"]

_INSTANT = 0.001
"""A timer counts as expired with less than this many seconds left, because sums of floats are not exact."""


def remaining(seconds: float) -> timedelta:
    """Return the rest of a wait that ends in `seconds`; zero if its timer has expired, as with 0.0004 or -3.0."""
    return timedelta(seconds=seconds) if seconds > _INSTANT else timedelta()
