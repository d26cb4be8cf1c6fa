"""The answers of a gate as Events on the Bundle that it stands before, and as a condition of the instance (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kardinal.api import Bundle, PolicyGate, set_condition
from kardinal.api.policy_gate import PolicyGateStatus
from kardinal.api.promotion_step import ENDED_STATES

__all__ = ["GateEvent", "gate_event", "with_condition"]

Result = Literal["pass", "fail", "error"]

_REASONS: dict[Result, str] = {"pass": "Open", "fail": "Closed", "error": "Undecided"}


@dataclass(frozen=True, slots=True)
class GateEvent:
    """A Kubernetes Event about a Bundle."""

    reason: Literal["GateOpened", "GateClosed"]
    note: str


def gate_event(
    name: str, environment: str, *, bundle: Bundle, before: PolicyGateStatus, after: PolicyGateStatus
) -> GateEvent | None:
    """Return the Event of an answer; None where the gate stays as it was, or nothing waits for it any more.

    The instances of a Bundle that is through stay, and open and close with the week: they hold nothing.
    """
    entry = bundle.status.environments.get(environment)
    is_over = bundle.status.has_ended or (entry is not None and entry.state in ENDED_STATES)
    if is_over or after.ready is None or after.ready == before.ready:
        return None
    reason = f": {after.reason}" if after.reason else ""
    if after.ready:
        return GateEvent("GateOpened", f"gate {name} before {environment} is open{reason}")
    return GateEvent("GateClosed", f"gate {name} before {environment} is closed{reason}")


def with_condition(
    status: PolicyGateStatus, instance: PolicyGate, result: Result, *, now: datetime
) -> PolicyGateStatus:
    """Return the status of an instance with the condition Ready that says the same, for `kubectl wait`."""
    conditions = set_condition(
        instance.status.conditions,
        "Ready",
        "True" if status.ready else "False",
        reason=_REASONS[result],
        message=status.reason or "",
        now=now,
        observed_generation=instance.metadata.generation or None,
    )
    return status.model_copy(update={"conditions": conditions})
