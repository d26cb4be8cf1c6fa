"""The answers of a gate as Events on the Bundle that it holds, and as condition and history of the instance (pure)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kardinal.objects.text import cut
from kardinal.promotion.api import Bundle, PolicyGate, set_condition
from kardinal.promotion.api.policy_gate import KEPT_ANSWERS, PastAnswer, PolicyGateStatus
from kardinal.promotion.api.promotion_step import ENDED_STATES

__all__ = ["GateEvent", "gate_event", "with_condition", "with_history"]

_REASON_LIMIT = 256
"""The most characters of a reason in the history."""

Result = Literal["pass", "fail", "error"]

_REASONS: dict[Result, str] = {"pass": "Open", "fail": "Closed", "error": "Undecided"}


@dataclass(frozen=True, slots=True)
class GateEvent:
    """A Kubernetes Event about a Bundle; its `note` is, for example, `gate no-fridays before prod is closed`."""

    reason: Literal["GateOpened", "GateClosed"]
    note: str


def gate_event(
    name: str, environment: str, *, bundle: Bundle, before: PolicyGateStatus, after: PolicyGateStatus
) -> GateEvent | None:
    """Return the Event for an answer; None if the answer is unchanged, or nothing waits for the gate any more.

    The instances of a Bundle that has passed remain and still open and close, for example with the day of the week,
    although they hold nothing.
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
    """Return the status of an instance with the condition Ready for its answer, for `kubectl wait`."""
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


def with_history(status: PolicyGateStatus, instance: PolicyGate, *, now: datetime) -> PolicyGateStatus:
    """Return the status of an instance with its history, which grows by an answer that differs from the last one."""
    history = instance.status.history or ()
    if status.ready is not None and (not history or history[-1].ready != status.ready):
        reason = cut(status.reason, _REASON_LIMIT) if status.reason else None
        history = (*history, PastAnswer(ready=status.ready, since=now, reason=reason))[-KEPT_ANSWERS:]
    return status.model_copy(update={"history": history or None})
