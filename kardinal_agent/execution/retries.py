"""Decide whether a step that has failed is tried again, and when: functions of the status and the failure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.runtime import Backoff
from kardinal.steps.declaration import PlannedStep
from kardinal_agent.errors import Failure
from kardinal_agent.execution import transitions

__all__ = ["Again", "again", "limited_by"]


@dataclass(frozen=True, slots=True)
class Again:
    """The status until the next attempt, and how long that waits."""

    status: PromotionStepStatus
    delay: timedelta


def limited_by(step: PlannedStep, status: PromotionStepStatus, failure: Failure) -> Failure:
    """Return the failure, final where the step has had as many attempts as its `retry` allows.

    A failure that a person has to mend counts for nothing: what waits must not end because a token has expired.
    """
    attempts = status.retry.attempts + 1 if status.retry else 1
    if not failure.passing or step.spec.retry is None or attempts < step.spec.retry.attempts:
        return failure
    message = f"{failure.message} (attempt {attempts} of {step.spec.retry.attempts})"
    return replace(failure, message=message, transient=False)


def again(
    status: PromotionStepStatus,
    failure: Failure,
    message: str,
    *,
    now: datetime,
    backoff: Backoff,
    deadline: datetime | None,
) -> Again | None:
    """Return how the promotion waits for another attempt, until `deadline` at most; None where the failure ends it."""
    if not failure.transient:
        return None
    attempts = status.retry.attempts if status.retry else 0
    limited = (status.retry.limited or 0) if status.retry else 0
    if failure.attempts is not None:
        limited += 1
        if limited >= failure.attempts:
            return None
    delay = timedelta(seconds=max(backoff.delay(attempts), failure.retry_after or 0.0))
    if deadline is not None:
        delay = min(delay, max(deadline - now, timedelta()))
    after = transitions.retrying(status, message, now=now, delay=delay, limited=limited)
    if failure.blocked:
        held = transitions.held(after, message, now=now, reason=transitions.BLOCKED)
        after = held.model_copy(update={"message": after.message})
    return Again(after, delay)
