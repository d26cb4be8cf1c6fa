"""Build the next status of a promotion from the current one and the action or effect (pure).

The condition Ready is True in the state Verified alone; its reason is the state, or the reason of a failure. The
condition Held exists once a promotion was held, and is True while a gate, freeze or hold, or a missing thing such as a
Secret, prevents its next effect.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal.objects.text import cut
from kardinal.promotion.api import set_condition
from kardinal.promotion.api.evidence import Evidence
from kardinal.promotion.api.promotion_step import BLOCKED, NO_AGENT, PromotionStepStatus, Proposal, Retry, StepProgress
from kardinal.promotion.steps.declaration import PlannedStep
from kardinal_agent.execution.ownership import NOT_OWNED
from kardinal_agent.steps import Done
from kardinal_agent.steps.base import StatusFields, Wait, WaitKind

__all__ = [
    "HELD",
    "entered",
    "failed",
    "held",
    "located",
    "owned",
    "passed_over",
    "paused",
    "ready",
    "released",
    "restarted",
    "retrying",
    "skipped",
    "succeeded",
    "taken",
    "updated",
    "verified",
    "waiting",
    "withdrawn",
]

Status = PromotionStepStatus

HELD = "Held"
"""The reason of the condition Held if a gate, freeze or hold forbids the next effect."""


def restarted(attempt: int, proposal: Proposal | None) -> Status:
    """Return the first status of an attempt, with the `proposal` of the attempt before if that is still open.

    The status of the Bundle keeps the result of the attempt before.
    """
    return Status(state="Pending", attempt=attempt, proposal=proposal)


def withdrawn(status: Status) -> Status:
    """Return the status of a promotion whose proposal is withdrawn."""
    return status.model_copy(update={"proposal": None})


def paused(status: Status, wait: Wait, *, now: datetime) -> Status:
    """Return the status of a promotion that waits."""
    match wait.kind:
        case WaitKind.START:
            return status.model_copy(update={"state": status.state or "Pending", "message": _cut(wait.message)})
        case WaitKind.ADMISSION:
            update = {
                "state": status.state or "Pending",
                "message": _cut(wait.message),
                "prepared_at": status.prepared_at or now,
            }
            return status.model_copy(update=update)
        case WaitKind.BLOCKED:
            return held(status, wait.message, now=now, reason=BLOCKED)
        case WaitKind.HELD:
            return held(status, wait.message, now=now)
        case WaitKind.STEP:
            return waiting(status, wait.message, now=now)


def entered(status: Status, step: PlannedStep, index: int, *, now: datetime, timeout: timedelta | None) -> Status:
    """Return the status at the step `index`; `timeout` is the time limit of a proof.

    Deadlines are set when a step is entered for the first time, and never changed.
    """
    declaration = step.declaration
    known = status.steps[index] if index < len(status.steps) else None
    if known is None:
        deadline = now + step.time_limit if step.time_limit is not None else None
        known = StepProgress(uses=step.name, state="Running", started_at=now, deadline=deadline)
    update: dict[str, object] = {
        "state": declaration.state,
        "current_step": index,
        "steps": (*status.steps[:index], known),
        "started_at": status.started_at or now,
    }
    if declaration.proves and timeout is not None and status.health_deadline is None:
        update["health_deadline"] = now + timeout
    return status.model_copy(update=update)


def succeeded(status: Status, step: PlannedStep, index: int, done: Done, *, now: datetime) -> Status:
    """Return the status after the step `index`."""
    outputs = dict(status.outputs or {})
    if done.outputs:
        outputs[step.spec.output_name] = dict(done.outputs)
    after = released(_finished(status, step, index, "Succeeded", done.message, now=now), now=now, reason=BLOCKED)
    if flag := done.flag:
        conditions = set_condition(
            after.conditions, flag.condition, "True", reason=flag.condition, message=flag.message, now=now
        )
        after = after.model_copy(update={"conditions": conditions})
    return after.model_copy(update={**done.update, "outputs": outputs or None})


def skipped(status: Status, step: PlannedStep, index: int, message: str, *, now: datetime) -> Status:
    """Return the status after the step `index` was left out."""
    after = _finished(status, step, index, "Skipped", message, now=now)
    return after.model_copy(update={"current_step": index, "started_at": status.started_at or now})


def passed_over(status: Status, step: PlannedStep, index: int, message: str, *, now: datetime) -> Status:
    """Return the status after the step `index` has failed and the promotion goes on."""
    return _finished(status, step, index, "Failed", message, now=now)


def located(status: Status, index: int, location: str) -> Status:
    """Return the status with the URL at which the endpoint of the step `index` reports the progress of its work."""
    progress = status.steps[index].model_copy(update={"location": location})
    return status.model_copy(update={"steps": (*status.steps[:index], progress)})


def updated(status: Status, fields: StatusFields) -> Status:
    """Return the status with the fields that a step has found out, and without a retry."""
    return status.model_copy(update={**fields, "retry": None})


def waiting(status: Status, message: str, *, now: datetime) -> Status:
    """Return the status at the same step; `message` says what the step waits for."""
    return released(status, now=now, reason=BLOCKED).model_copy(update={"message": _cut(message), "retry": None})


def held(status: Status, message: str, *, now: datetime, reason: str = HELD) -> Status:
    """Return the status of a promotion that must not make its next effect."""
    conditions = set_condition(status.conditions, "Held", "True", reason=reason, message=message, now=now)
    return status.model_copy(
        update={"state": status.state or "Pending", "message": _cut(message), "conditions": conditions}
    )


def released(status: Status, *, now: datetime, reason: str | None = None) -> Status:
    """Return the status of a promotion that is no longer held, or no longer for this `reason`.

    A promotion that never was held does not get the condition.
    """
    condition = status.condition("Held")
    if condition is None or condition.status == "False" or reason not in (None, condition.reason):
        return status
    conditions = set_condition(status.conditions, "Held", "False", reason="Released", now=now)
    return status.model_copy(update={"conditions": conditions})


def taken(status: Status) -> Status:
    """Return the status without the condition that no agent serves the promotion."""
    if status.condition(NO_AGENT) is None:
        return status
    kept = tuple(each for each in status.conditions if each.type != NO_AGENT)
    return status.model_copy(update={"conditions": kept})


def owned(status: Status, *, now: datetime) -> Status:
    """Return the status with the condition NotOwned as False, if it was True."""
    condition = status.condition(NOT_OWNED)
    if condition is None or condition.status == "False":
        return status
    conditions = set_condition(status.conditions, NOT_OWNED, "False", reason="Owned", now=now)
    return status.model_copy(update={"conditions": conditions})


def retrying(status: Status, error: str, *, now: datetime, delay: timedelta, limited: int = 0) -> Status:
    """Return the status after a failure, until the step is tried again after `delay`.

    `limited` is the number of failures so far of a class that ends the promotion after a few tries.
    """
    attempts = status.retry.attempts + 1 if status.retry else 1
    retry = Retry(attempts=attempts, limited=limited or None, last_error=_cut(error), next_at=now + delay)
    return status.model_copy(
        update={"state": status.state or "Pending", "message": _cut(f"will be tried again: {error}"), "retry": retry}
    )


def failed(status: Status, message: str, evidence: Evidence | None = None, *, now: datetime) -> Status:
    """Return the last status of a failed promotion; its running step is marked as Failed."""
    steps = status.steps
    last = status.steps[-1] if status.steps else None
    if last is not None and last.state == "Running":
        steps = (
            *status.steps[:-1],
            last.model_copy(update={"state": "Failed", "message": _cut(message), "finished_at": now}),
        )
    update = {"state": "Failed", "message": _cut(message), "steps": steps, "evidence": evidence, "retry": None}
    return released(status.model_copy(update=update), now=now)


def verified(status: Status, message: str, evidence: Evidence, *, now: datetime) -> Status:
    """Return the last status of a proven promotion."""
    last = status.steps[-1].model_copy(update={"state": "Succeeded", "message": _cut(message), "finished_at": now})
    return status.model_copy(
        update={
            "state": "Verified",
            "message": _cut(message),
            "steps": (*status.steps[:-1], last),
            "evidence": evidence,
            "verified_at": now,
            "healthy": True,
            "healthy_since": now,
            "retry": None,
        }
    )


def ready(status: Status, *, reason: str | None = None, generation: int, now: datetime) -> Status:
    """Return the status with the condition Ready of its state; `reason` defaults to the state."""
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


def _finished(
    status: Status,
    step: PlannedStep,
    index: int,
    state: Literal["Succeeded", "Failed", "Skipped"],
    message: str,
    *,
    now: datetime,
) -> Status:
    began = status.steps[index].started_at if index < len(status.steps) else None
    progress = StepProgress(uses=step.name, state=state, message=_cut(message), started_at=began, finished_at=now)
    steps = (*status.steps[:index], progress)
    return status.model_copy(update={"steps": steps, "message": _cut(message), "retry": None})


def _cut(text: str) -> str:
    return cut(text, MESSAGE_LIMIT)
