"""How the status of a promotion moves: functions from a status to the next one.

The reconciler keeps the status it has read and the one it is working towards; nothing here reads or writes anything.
Ready is the condition people wait for: it is True in Verified alone, and its reason is the state, or why the promotion
failed. Held is there while a freeze or a gate keeps a promotion from its next effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from kardinal.api import set_condition
from kardinal.api.evidence import Evidence
from kardinal.api.pipeline import StepSpec
from kardinal.api.promotion_step import PromotionStepStatus, Retry, StepProgress
from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal.objects.text import cut
from kardinal_agent.execution.machine import state_of
from kardinal_agent.steps.base import Done

__all__ = ["awaiting", "entered", "failed", "held", "ready", "released", "retrying", "succeeded", "told", "verified"]

Status = PromotionStepStatus


def awaiting(status: Status, message: str) -> Status:
    """Something has to be there first."""
    return status.model_copy(update={"state": status.state or "Pending", "message": _cut(message)})


def entered(
    status: Status, sequence: Sequence[StepSpec], index: int, *, now: datetime, health_timeout: timedelta
) -> Status:
    """At the step `index`. The health deadline is set when its step is entered, and never again."""
    uses = sequence[index].uses
    update: dict[str, object] = {
        "state": state_of(uses),
        "current_step": index,
        "steps": (*status.steps[:index], StepProgress(uses=uses, state="Running")),
        "started_at": status.started_at or now,
    }
    if uses == "health-check" and status.health_deadline is None:
        update["health_deadline"] = now + health_timeout
    return status.model_copy(update=update)


def succeeded(status: Status, sequence: Sequence[StepSpec], index: int, done: Done, *, now: datetime) -> Status:
    """The step `index` is done."""
    uses = sequence[index].uses
    progress = StepProgress(uses=uses, state="Succeeded", message=_cut(done.message), finished_at=now)
    outputs = dict(status.outputs or {})
    if done.outputs:
        outputs[uses] = dict(done.outputs)
    return status.model_copy(
        update={
            **done.update,
            "steps": (*status.steps[:index], progress),
            "outputs": outputs or None,
            "message": _cut(done.message),
            "retry": None,
        }
    )


def told(status: Status, message: str) -> Status:
    """Still at it; `message` says what is waited for."""
    return status.model_copy(update={"message": _cut(message), "retry": None})


def held(status: Status, message: str, *, now: datetime) -> Status:
    """Kept from the next effect."""
    conditions = set_condition(status.conditions, "Held", "True", reason="Held", message=message, now=now)
    return status.model_copy(
        update={"state": status.state or "Pending", "message": _cut(message), "conditions": conditions}
    )


def released(status: Status, *, now: datetime) -> Status:
    """No longer held; a promotion that never was does not carry the condition."""
    condition = status.condition("Held")
    if condition is None or condition.status == "False":
        return status
    conditions = set_condition(status.conditions, "Held", "False", reason="Released", now=now)
    return status.model_copy(update={"conditions": conditions})


def retrying(status: Status, error: str, *, now: datetime, delay: timedelta) -> Status:
    """The attempt failed and will be repeated."""
    attempts = status.retry.attempts + 1 if status.retry else 1
    retry = Retry(attempts=attempts, last_error=_cut(error), next_at=now + delay)
    return status.model_copy(
        update={"state": status.state or "Pending", "message": _cut(f"will be tried again: {error}"), "retry": retry}
    )


def failed(status: Status, message: str, *, now: datetime) -> Status:
    """Ended without success; the step it was at is where it failed."""
    steps, last = status.steps, status.steps[-1] if status.steps else None
    if last is not None and last.state == "Running":
        steps = (
            *status.steps[:-1],
            last.model_copy(update={"state": "Failed", "message": _cut(message), "finished_at": now}),
        )
    update = {"state": "Failed", "message": _cut(message), "steps": steps, "retry": None}
    return released(status.model_copy(update=update), now=now)


def verified(status: Status, message: str, evidence: Evidence, *, now: datetime) -> Status:
    """Ended with a proof."""
    last = status.steps[-1].model_copy(update={"state": "Succeeded", "message": _cut(message), "finished_at": now})
    return status.model_copy(
        update={
            "state": "Verified",
            "message": _cut(message),
            "steps": (*status.steps[:-1], last),
            "evidence": evidence,
            "verified_at": now,
            "retry": None,
        }
    )


def ready(status: Status, *, reason: str | None = None, generation: int, now: datetime) -> Status:
    """With the condition Ready that belongs to the state."""
    conditions = set_condition(
        status.conditions,
        "Ready",
        "True" if status.state == "Verified" else "False",
        reason=reason or status.state or "Pending",
        message=status.message or "",
        now=now,
        observed_generation=generation,
    )
    return status.model_copy(update={"conditions": conditions, "observed_generation": generation})


def _cut(text: str) -> str:
    return cut(text, MESSAGE_LIMIT)
