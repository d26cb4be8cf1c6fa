"""The recheck interval of a gate, and how long an answer stays fresh.

The Graph lets a gate's answer through only while it is fresh, so that a controller that is down opens nothing. The
reconciler that renews answers and the translator that writes the window must agree on the interval; both ask here.
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.api.policy_gate import PolicyGateSpec

__all__ = ["freshness_window", "recheck_interval"]

SHORTEST_RECHECK = timedelta(seconds=1)
"""A shorter interval would be a status write per millisecond."""


def recheck_interval(spec: PolicyGateSpec) -> timedelta:
    return max(spec.recheck_interval, SHORTEST_RECHECK)


def freshness_window(spec: PolicyGateSpec) -> timedelta:
    """Return an answer older than this does not open anything; one renewal may be late."""
    return 2 * recheck_interval(spec)
