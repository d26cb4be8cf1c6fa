"""The recheck interval of a gate, and the time for which its answer counts.

The Graph lets the answer of a gate through only while it counts, and the agent asks again before every effect, so a
controller that is down opens no gate. Three parts must agree on this time: the reconciler that renews answers, the
translator that writes the conditions of the Graph, and the agent. All three call this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from kardinal import cel
from kardinal.objects.duration import format_duration
from kardinal.promotion.api.policy_gate import PolicyGateSpec
from kardinal.promotion.policy.attributes import reads_perishable

__all__ = ["answer_conditions", "freshness_window", "is_perishable", "reads_clock", "recheck_interval", "unexpired"]

SHORTEST_RECHECK = timedelta(seconds=1)
"""A shorter interval is raised to this value; an interval of a millisecond would mean as frequent status writes."""

LONGEST_RECHECK = timedelta(days=365)
"""A longer interval is lowered to this value; the end of its freshness window could exceed the largest datetime."""

_CLOCK = "schedule"


def recheck_interval(spec: PolicyGateSpec) -> timedelta:
    """Return the longest time between two evaluations of a gate: `spec.recheckInterval`, within the two limits."""
    return min(max(spec.recheck_interval, SHORTEST_RECHECK), LONGEST_RECHECK)


def freshness_window(spec: PolicyGateSpec) -> timedelta:
    """Return for how long an answer counts that is renewed every interval; one renewal may be late."""
    return 2 * recheck_interval(spec)


def unexpired(gate: str) -> str:
    """Return the CEL expression that is true until time ends the answer of the gate with the variable name `gate`.

    The Graph uses it as a condition for the start of a promotion, and the agent evaluates it before each effect.
    """
    return f"!has({gate}.status.nextTransitionAt) || timestamp({gate}.status.nextTransitionAt) > now()"


def answer_conditions(gate: str, spec: PolicyGateSpec) -> Sequence[str]:
    """Return the CEL conditions on the age of a gate's answer under which a promotion may start.

    That the gate is ready is a separate condition.
    """
    window = format_duration(freshness_window(spec))
    return (f'timestamp({gate}.status.lastEvaluatedAt) > now() - duration("{window}")', unexpired(gate))


def reads_clock(program: cel.Program) -> bool:
    """Return whether the answer depends on the time of day or on `now()`."""
    return program.volatile or any(reference.root == _CLOCK for reference in program.references)


def is_perishable(program: cel.Program) -> bool:
    """Return whether the answer can change at any moment, for example because it depends on a soak and so on health."""
    return reads_perishable(program)
