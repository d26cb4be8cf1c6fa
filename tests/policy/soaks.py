"""Soaks as gates read them."""

from __future__ import annotations

from datetime import datetime

from kardinal.promotion.policy.soak import HealthyTime, Soak

__all__ = ["soak_since"]


def soak_since(moment: datetime) -> Soak:
    """Return the soak behind one environment that has been healthy since then."""
    return Soak(times=(HealthyTime(since=moment),))
