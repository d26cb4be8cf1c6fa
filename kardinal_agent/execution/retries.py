"""Decide what follows a failure: another try and its time, the next step, or the end (pure).

The error itself states its class (`kardinal_agent.errors`):

    class      example              what follows
    final      a wrong path         the promotion ends
    passing    no answer in time    the step is tried again, after longer and longer delays
    limited    an unknown answer    the same, but the promotion ends after `Failure.attempts`
    blocked    a missing Secret     the step is tried again, and the condition Held has the reason Blocked

A step can limit its tries at a passing failure (`retry.attempts`), and a step without a role can be passed over when it
fails (`continueOnError`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kardinal.objects.duration import format_duration
from kardinal.promotion.api.promotion_step import BLOCKED, PromotionStepStatus
from kardinal.promotion.steps.declaration import PlannedStep
from kardinal.runtime import Backoff
from kardinal_agent.errors import Failure
from kardinal_agent.execution import status as statuses

__all__ = ["Again", "GiveUp", "PassOver", "RetryPolicy", "after_failure", "timed_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The limits of a step for its tries."""

    name: str
    """The step in messages, as in `git-push: no answer in time`."""
    backoff: Backoff
    attempts: int | None = None
    """The most tries in a row that may fail for a passing reason. Defaults to any number."""
    optional: bool = False
    """Whether the promotion goes on when the step has failed."""
    deadline: datetime | None = None
    """The time of the last try, which shortens the delay before it."""


@dataclass(frozen=True, slots=True)
class Again:
    """Try the step again after `delay`; `status` is the status until then."""

    status: PromotionStepStatus
    delay: timedelta


@dataclass(frozen=True, slots=True)
class PassOver:
    """Go on with the next step."""

    message: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End the promotion without success."""

    reason: str
    message: str


def after_failure(
    status: PromotionStepStatus, failure: Failure, policy: RetryPolicy, *, now: datetime
) -> Again | PassOver | GiveUp:
    """Return what follows a failure at `now`."""
    failure = _limited(status, failure, policy)
    message = f"{policy.name}: {failure.message}"
    if not failure.transient:
        return PassOver(failure.message) if policy.optional else GiveUp(failure.reason, message)
    attempts = status.retry.attempts if status.retry else 0
    limited = (status.retry.limited or 0) if status.retry else 0
    if failure.attempts is not None:
        limited += 1
        if limited >= failure.attempts:
            return GiveUp(failure.reason, message)
    delay = timedelta(seconds=max(policy.backoff.delay(attempts), failure.retry_after or 0.0))
    if policy.deadline is not None:
        delay = min(delay, max(policy.deadline - now, timedelta()))
    after = statuses.retrying(status, message, now=now, delay=delay, limited=limited)
    if failure.blocked:
        held = statuses.held(after, message, now=now, reason=BLOCKED)
        after = held.model_copy(update={"message": after.message})
    return Again(after, delay)


def timed_out(step: PlannedStep, message: str, *, deadline: datetime | None, now: datetime) -> Failure | None:
    """Return the failure of a step that is not done at its deadline, with the `message` it waits with; None before."""
    if deadline is None or now < deadline or step.time_limit is None:
        return None
    return Failure("StepTimeout", f"not done within {format_duration(step.time_limit)}: {message}", transient=False)


def _limited(status: PromotionStepStatus, failure: Failure, policy: RetryPolicy) -> Failure:
    """Return the failure, made final if the step has had as many tries as its `retry` allows.

    A blocked failure does not count: a promotion must not end because a token has expired.
    """
    attempts = status.retry.attempts + 1 if status.retry else 1
    if not failure.passing or policy.attempts is None or attempts < policy.attempts:
        return failure
    message = f"{failure.message} (attempt {attempts} of {policy.attempts})"
    return replace(failure, message=message, transient=False)
