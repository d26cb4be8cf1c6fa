"""The recheck interval of a gate, and how long an answer counts.

The Graph lets a gate's answer through only while it counts, and the agent asks again before every effect, so that a
controller that is down opens nothing. The reconciler that renews answers, the translator that writes the conditions of
the Graph and the agent must agree; all of them ask here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from kardinal import cel
from kardinal.api.duration import format_duration
from kardinal.api.policy_gate import PolicyGateSpec
from kardinal.policy.context import SOAK

__all__ = ["answer_conditions", "freshness_window", "is_perishable", "reads_clock", "recheck_interval", "unexpired"]

SHORTEST_RECHECK = timedelta(seconds=1)
"""A shorter interval would be a status write per millisecond."""

LONGEST_RECHECK = timedelta(days=365)
"""With a longer interval, the moment until which an answer counts could not be written."""

_PERISHABLE = frozenset({SOAK, "bundle"})
_CLOCK = "schedule"


def recheck_interval(spec: PolicyGateSpec) -> timedelta:
    """Return how often a gate is evaluated again at the latest."""
    return min(max(spec.recheck_interval, SHORTEST_RECHECK), LONGEST_RECHECK)


def freshness_window(spec: PolicyGateSpec) -> timedelta:
    """Return how long an answer counts that has to be renewed every interval; one renewal may be late."""
    return 2 * recheck_interval(spec)


def unexpired(gate: str) -> str:
    """Return the expression that says whether time has not yet ended the answer of the gate that is called `gate`.

    It is a condition in the Graph, for the start of a promotion, and what the agent asks before each effect.
    """
    return f"!has({gate}.status.nextTransitionAt) || timestamp({gate}.status.nextTransitionAt) > now()"


def answer_conditions(gate: str, spec: PolicyGateSpec) -> Sequence[str]:
    """Return the expressions under which the answer of a gate lets a promotion start, besides that it is ready."""
    window = format_duration(freshness_window(spec))
    return (f'timestamp({gate}.status.lastEvaluatedAt) > now() - duration("{window}")', unexpired(gate))


def reads_clock(program: cel.Program) -> bool:
    """Return whether the time of day or `now()` takes part in an answer."""
    return program.volatile or any(reference.root == _CLOCK for reference in program.references)


def is_perishable(program: cel.Program) -> bool:
    """Return whether an answer rests on what may be otherwise at any moment: the health behind a soak."""
    return any(str(reference) in _PERISHABLE for reference in program.references)
