"""How the status of a promotion moves: functions from a status to the next one, and the move itself as a value.

`Attempt` keeps the status it has read and the one it is working towards; nothing here reads or writes anything. Ready
is the condition people wait for: it is True in Verified alone, and its reason is the state, or why the promotion
failed. Held is there while a freeze or a gate keeps a promotion from its next effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from kardinal.api import Bundle, PromotionStep, set_condition
from kardinal.api.evidence import Evidence
from kardinal.api.promotion_step import NO_AGENT, PromotionStepStatus, Proposal, Retry, StepProgress
from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal.objects.text import cut
from kardinal.steps.declaration import PlannedStep
from kardinal_agent.execution.machine import Ask, Await, Block, Hold
from kardinal_agent.execution.ownership import NOT_OWNED
from kardinal_agent.steps import Announcement, Done
from kardinal_agent.steps.base import StatusFields

__all__ = [
    "BLOCKED",
    "HELD",
    "Transition",
    "asking",
    "awaiting",
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
"""The reason of the condition Held where a freeze or a gate holds a promotion."""

BLOCKED = "Blocked"
"""The reason of the condition Held where something is missing, mostly for a person to put right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One move of a promotion: its status before and after, and the Event that a step asks for."""

    step: PromotionStep
    bundle: Bundle
    before: Status
    after: Status
    now: datetime
    announcement: Announcement | None = None


def awaiting(status: Status, message: str) -> Status:
    """Return the status of a promotion that may not start yet; `message` says what is missing."""
    return status.model_copy(update={"state": status.state or "Pending", "message": _cut(message)})


def restarted(attempt: int, proposal: Proposal | None) -> Status:
    """Return the status of an attempt that starts over, with the `proposal` that is still open.

    Of the one before, the Bundle keeps what came of it.
    """
    return Status(state="Pending", attempt=attempt, proposal=proposal)


def withdrawn(status: Status) -> Status:
    """Return the status of a promotion of which nothing is left to be merged."""
    return status.model_copy(update={"proposal": None})


def asking(status: Status, message: str, *, now: datetime) -> Status:
    """Return the status of a promotion whose change is ready and waits until its Bundle is admitted."""
    return awaiting(status, message).model_copy(update={"prepared_at": status.prepared_at or now})


def paused(status: Status, wait: Await | Ask | Block | Hold, *, now: datetime) -> Status:
    """Return the status of a promotion that does nothing until something else has happened."""
    match wait:
        case Await(message):
            return awaiting(status, message)
        case Ask(message):
            return asking(status, message, now=now)
        case Block(message):
            return held(status, message, now=now, reason=BLOCKED)
        case Hold(message):
            return held(status, message, now=now)


def entered(status: Status, step: PlannedStep, index: int, *, now: datetime, timeout: timedelta | None) -> Status:
    """Return the status at the step `index`; `timeout` is that of a proof.

    Deadlines are set when a step is entered first, and never again.
    """
    declaration, known = step.declaration, status.steps[index] if index < len(status.steps) else None
    if known is None:
        deadline = now + step.time_limit if step.time_limit is not None else None
        known = StepProgress(uses=step.name, state="Running", deadline=deadline)
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
    """Return the status with the place where the endpoint of the step `index` tells how its work stands."""
    progress = status.steps[index].model_copy(update={"location": location})
    return status.model_copy(update={"steps": (*status.steps[:index], progress)})


def updated(status: Status, fields: StatusFields) -> Status:
    """Return the status with what a step has found out, without a failure, while it waits."""
    return status.model_copy(update={**fields, "retry": None})


def waiting(status: Status, message: str, *, now: datetime) -> Status:
    """Return the status at the same step; `message` says what is waited for."""
    return released(status, now=now, reason=BLOCKED).model_copy(update={"message": _cut(message), "retry": None})


def held(status: Status, message: str, *, now: datetime, reason: str = HELD) -> Status:
    """Return the status of a promotion that is kept from its next effect."""
    conditions = set_condition(status.conditions, "Held", "True", reason=reason, message=message, now=now)
    return status.model_copy(
        update={"state": status.state or "Pending", "message": _cut(message), "conditions": conditions}
    )


def released(status: Status, *, now: datetime, reason: str | None = None) -> Status:
    """Return the status of a promotion that nothing holds, or nothing for this `reason`.

    One that never was held does not have the condition.
    """
    condition = status.condition("Held")
    if condition is None or condition.status == "False" or reason not in (None, condition.reason):
        return status
    conditions = set_condition(status.conditions, "Held", "False", reason="Released", now=now)
    return status.model_copy(update={"conditions": conditions})


def taken(status: Status) -> Status:
    """Return the status of a promotion that an agent has taken."""
    if status.condition(NO_AGENT) is None:
        return status
    kept = tuple(each for each in status.conditions if each.type != NO_AGENT)
    return status.model_copy(update={"conditions": kept})


def owned(status: Status, *, now: datetime) -> Status:
    """Return the status of a promotion that its Graph made; one that was always known as such has no condition."""
    condition = status.condition(NOT_OWNED)
    if condition is None or condition.status == "False":
        return status
    conditions = set_condition(status.conditions, NOT_OWNED, "False", reason="Owned", now=now)
    return status.model_copy(update={"conditions": conditions})


def retrying(status: Status, error: str, *, now: datetime, delay: timedelta, limited: int = 0) -> Status:
    """Return the status after an attempt that failed and will be repeated after `delay`.

    `limited` counts the failures so far that are worth a few attempts only.
    """
    attempts = status.retry.attempts + 1 if status.retry else 1
    retry = Retry(attempts=attempts, limited=limited or None, last_error=_cut(error), next_at=now + delay)
    return status.model_copy(
        update={"state": status.state or "Pending", "message": _cut(f"will be tried again: {error}"), "retry": retry}
    )


def failed(status: Status, message: str, evidence: Evidence | None = None, *, now: datetime) -> Status:
    """Return the last status without success; the step that was running is where it failed."""
    steps, last = status.steps, status.steps[-1] if status.steps else None
    if last is not None and last.state == "Running":
        steps = (
            *status.steps[:-1],
            last.model_copy(update={"state": "Failed", "message": _cut(message), "finished_at": now}),
        )
    update = {"state": "Failed", "message": _cut(message), "steps": steps, "evidence": evidence, "retry": None}
    return released(status.model_copy(update=update), now=now)


def verified(status: Status, message: str, evidence: Evidence, *, now: datetime) -> Status:
    """Return the last status of a promotion that is proven."""
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
    """Return the status with the condition Ready of its state; `reason` is by default the state."""
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
    progress = StepProgress(uses=step.name, state=state, message=_cut(message), finished_at=now)
    steps = (*status.steps[:index], progress)
    return status.model_copy(update={"steps": steps, "message": _cut(message), "retry": None})


def _cut(text: str) -> str:
    return cut(text, MESSAGE_LIMIT)
