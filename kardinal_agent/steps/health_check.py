"""`health-check`: check the health of the environment until it is proved, or until the deadline.

The deadline is noted in the status when the step begins, so that a restart neither extends nor loses it; a correction
of the wall clock does not move it either (`kardinal_agent.health.deadlines`). An environment that is proved at the very
moment of the deadline is Verified. A failure ends the promotion before the deadline if every check during
`failureGrace` has found one, because tools report failures for a moment while they work. While a tool retries the
revision at which it has failed, the failure counts as lasting: otherwise frequent retries would keep it from ever
lasting long enough.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from kardinal.objects.conditions import format_time
from kardinal.objects.duration import format_duration
from kardinal.promotion.api import set_condition
from kardinal.promotion.api.health import HealthStatus
from kardinal.promotion.api.promotion_step import PROOF_MISSING
from kardinal_agent.errors import StepFailed
from kardinal_agent.health import CheckResult, Verdict
from kardinal_agent.steps.base import Done, StatusFields, StepContext, StepResult, Waiting
from kardinal_agent.steps.proof import Proof

__all__ = ["HealthCheck"]

_MISSING_AFTER = timedelta(seconds=30)
"""The time for which a named object may be missing before that is reported."""
_NOT_FAILING = {"failing_since": None, "reason": None, "failed_attempt": None}
"""The fields of `status.health` without a failure."""


class HealthCheck:
    async def run(self, context: StepContext) -> StepResult:
        step = context.step.model_copy(update={"status": context.status})
        finding = await Proof(step, context.bundle, context.sequence, context.health, context.remote).look()
        verdict = finding.verdict
        if verdict.state == "healthy":
            update: StatusFields = {
                **_reported(finding),
                **_health(context, **_NOT_FAILING),
                **_missing(finding, context)[0],
                **_verifying(context, since=context.now),
            }
            return Done(verdict.message, update=update)
        context = _no_longer_healthy(context)
        noted = context.status.health_deadline
        timeout = context.step.spec.health.timeout
        deadline = _from_now(context, "timeout", noted, timeout) if noted is not None and timeout is not None else None
        if deadline is not None and timeout is not None and context.now >= deadline:
            stood = f"; nothing has moved since {format_time(verdict.since)}" if verdict.since else ""
            message = f"not healthy within {format_duration(timeout)}: {verdict.message}{stood}"
            raise StepFailed("HealthTimeout", message)
        if verdict.state == "failed":
            return _failing(finding, context, deadline)
        fields: dict[str, Any] = {} if _is_tried_again(verdict, context) else dict(_NOT_FAILING)
        again = finding.again
        if await _asks(finding, context):
            fields = {**fields, "refreshed_at": context.now}
            again = timedelta()
        missing, certain_at = _missing(finding, context)
        look = context.now + again if again is not None else None
        moments = [moment for moment in (deadline, look, certain_at) if moment]
        update = {**_reported(finding), **_health(context, **fields), **missing, **_deadline(context)}
        until = min(moments, default=None)
        return Waiting(verdict.message, until=until, needs_person=finding.needs_person, update=update)


def _failing(finding: CheckResult, context: StepContext, deadline: datetime | None) -> Waiting:
    """Wait until a failure has lasted for `failureGrace`; its beginning is noted in the status.

    Raises `StepFailed` when it has lasted that long.
    """
    verdict = finding.verdict
    noted = context.status.health or HealthStatus()
    same = noted.failing_since is not None and (noted.failed_attempt or "") == verdict.attempt
    since = noted.failing_since if same and noted.failing_since is not None else context.now
    grace = context.step.spec.health.failure_grace
    ends = _from_now(context, "failure", since + grace, grace)
    if context.now >= ends:
        raise StepFailed("HealthFailed", f"{verdict.reason}: {verdict.message}")
    until = min(ends, deadline) if deadline is not None else ends
    health = _health(context, failing_since=since, reason=verdict.reason, failed_attempt=verdict.attempt or None)
    update: StatusFields = {**_reported(finding), **health, **_missing(finding, context)[0], **_deadline(context)}
    return Waiting(verdict.message, until=until, update=update)


def _verifying(context: StepContext, *, since: datetime | None) -> StatusFields:
    """Return the time since which the environment has been healthy, if its metrics decide; a noted time stays."""
    if context.step.spec.verify is None:
        return {}
    return {"verifying_since": context.status.verifying_since or since}


def _no_longer_healthy(context: StepContext) -> StepContext:
    """Return the context of an environment that is not healthy.

    If it was, while its metrics were waited for, it has the whole time again to become healthy.
    """
    timeout = context.step.spec.health.timeout
    if context.status.verifying_since is None or timeout is None:
        return context
    update = {"verifying_since": None, "health_deadline": context.now + timeout}
    return replace(context, status=context.status.model_copy(update=update))


def _deadline(context: StepContext) -> StatusFields:
    """Return the fields that `_no_longer_healthy` may have changed."""
    status = context.status
    return {"verifying_since": status.verifying_since, "health_deadline": status.health_deadline}


def _from_now(context: StepContext, name: str, moment: datetime, length: timedelta) -> datetime:
    """Return a moment of the status on the monotonic clock; `length` is the time from its note to the moment."""
    return context.now + context.health.deadlines.left(context.key, name, moment, at_most=length)


def _is_tried_again(verdict: Verdict, context: StepContext) -> bool:
    """Return whether a tool is retrying the revision at which it has failed, so that the failure lasts.

    The retry may still succeed, so the promotion does not fail during it.
    """
    noted = context.status.health
    return bool(verdict.attempt) and noted is not None and noted.failed_attempt == verdict.attempt


async def _asks(finding: CheckResult, context: StepContext) -> bool:
    """Return whether to note a refresh of the tool now; make the refresh that was noted before."""
    refreshes = context.health.refreshes
    noted = context.status.health
    if noted is None or noted.refreshed_at is None:
        return await refreshes.decide(context.key, finding.refreshable)
    await refreshes.ask(context.key)
    return False


def _health(context: StepContext, **fields: Any) -> StatusFields:
    """Return `status.health` with the given fields; no change if it would be empty."""
    health = (context.status.health or HealthStatus()).model_copy(update=fields)
    return {"health": health if health != HealthStatus() else None}


def _missing(finding: CheckResult, context: StepContext) -> tuple[StatusFields, datetime | None]:
    """Return the change of the condition ProofMissing, and the time at which a missing object is reported.

    The commit itself may create the named object, so it is reported as missing only after `_MISSING_AFTER`. The time of
    the first check is noted in the status, so that a restart does not report it twice.
    """
    conditions = context.status.conditions
    noted = context.status.condition(PROOF_MISSING)
    if finding.absent is None:
        if noted is None or finding.unreadable:
            return {}, None
        return {"conditions": tuple(each for each in conditions if each.type != PROOF_MISSING)}, None
    since = noted.last_transition_time if noted is not None else context.now
    certain = (noted is not None and noted.status == "True") or context.now >= since + _MISSING_AFTER
    conditions = set_condition(
        conditions,
        PROOF_MISSING,
        "True" if certain else "False",
        reason=f"{finding.absent.kind.kind}NotFound",
        message=finding.verdict.message,
        now=context.now,
    )
    return {"conditions": conditions}, None if certain else since + _MISSING_AFTER


def _reported(finding: CheckResult) -> StatusFields:
    """Return the fields with the phase of the delivery controller; empty if it was not checked."""
    if finding.delegated is None:
        return {}
    return {"delegated_to": finding.delegated.to, "delegated_status": finding.delegated.status}
