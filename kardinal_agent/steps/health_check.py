"""`health-check`: look whether the environment proves what was promoted, until its deadline.

The deadline stands in the status since the step was entered, so that a restart neither renews nor forgets it; once it
is known, a clock that is set does not move it (`kardinal_agent.health.deadlines`). Healthy beats late: what is proven
at the moment the time is over is proven. A failure ends the promotion before its deadline once every look for
`failureGrace` has found one: tools say so for a moment on their way to something else. While a tool tries again what it
has failed at, the failure goes on: else one that tries often would never have failed long enough.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kardinal.api import format_duration, set_condition
from kardinal.api.health import HealthStatus
from kardinal.api.promotion_step import PROOF_MISSING
from kardinal.objects.conditions import format_time
from kardinal_agent.errors import StepFailed
from kardinal_agent.health import Finding, Verdict
from kardinal_agent.steps.base import Done, StatusFields, StepContext, StepResult, Waiting
from kardinal_agent.steps.proof import Proof

__all__ = ["HealthCheck"]

_PATIENCE = timedelta(seconds=30)
"""How long an object that is named may be missing before that is told."""
_NOT_FAILING = {"failing_since": None, "reason": None, "failed_attempt": None}
"""The fields of `status.health` while nothing fails."""


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
            }
            return Done(verdict.message, update=update)
        noted, timeout = context.status.health_deadline, context.step.spec.health.timeout
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
            fields, again = {**fields, "refreshed_at": context.now}, timedelta()
        missing, certain_at = _missing(finding, context)
        look = context.now + again if again is not None else None
        moments = [moment for moment in (deadline, look, certain_at) if moment]
        update = {**_reported(finding), **_health(context, **fields), **missing}
        until = min(moments, default=None)
        return Waiting(verdict.message, until=until, needs_person=finding.needs_person, update=update)


def _failing(finding: Finding, context: StepContext, deadline: datetime | None) -> Waiting:
    """Wait for as long as a failure may last; what is noted of it survives a restart.

    Raises `StepFailed` once it has lasted.
    """
    verdict, noted = finding.verdict, context.status.health or HealthStatus()
    same = noted.failing_since is not None and (noted.failed_attempt or "") == verdict.attempt
    since = noted.failing_since if same and noted.failing_since is not None else context.now
    grace = context.step.spec.health.failure_grace
    ends = _from_now(context, "failure", since + grace, grace)
    if context.now >= ends:
        raise StepFailed("HealthFailed", f"{verdict.reason}: {verdict.message}")
    until = min(ends, deadline) if deadline is not None else ends
    health = _health(context, failing_since=since, reason=verdict.reason, failed_attempt=verdict.attempt or None)
    update: StatusFields = {**_reported(finding), **health, **_missing(finding, context)[0]}
    return Waiting(verdict.message, until=until, update=update)


def _from_now(context: StepContext, name: str, moment: datetime, length: timedelta) -> datetime:
    """Return a moment, which was `length` away when it was noted, as the clock that cannot be set has it."""
    return context.now + context.health.deadlines.left(context.key, name, moment, at_most=length)


def _is_tried_again(verdict: Verdict, context: StepContext) -> bool:
    """Return whether a tool is at what it has failed at before: the failure goes on until it comes to something else.

    It need not fail again at once, so its promotion does not end meanwhile.
    """
    noted = context.status.health
    return bool(verdict.attempt) and noted is not None and noted.failed_attempt == verdict.attempt


async def _asks(finding: Finding, context: StepContext) -> bool:
    """Return whether the tool is to be asked to look at the repository, which is noted first; ask what was noted."""
    refreshes, noted = context.health.refreshes, context.status.health
    if noted is None or noted.refreshed_at is None:
        return await refreshes.decide(context.key, finding.refreshable)
    await refreshes.ask(context.key)
    return False


def _health(context: StepContext, **fields: Any) -> StatusFields:
    """Return the change of `status.health`, which is not there as long as there is nothing to note."""
    health = (context.status.health or HealthStatus()).model_copy(update=fields)
    return {"health": health if health != HealthStatus() else None}


def _missing(finding: Finding, context: StepContext) -> tuple[StatusFields, datetime | None]:
    """Return the change of the condition ProofMissing, and when it is certain.

    What is named may come with the very commit, so it is told as missing after a while. The status has the moment of
    the first look, so that a restart tells nothing twice.
    """
    conditions, noted = context.status.conditions, context.status.condition(PROOF_MISSING)
    if finding.absent is None:
        if noted is None or finding.unreadable:
            return {}, None
        return {"conditions": tuple(each for each in conditions if each.type != PROOF_MISSING)}, None
    since = noted.last_transition_time if noted is not None else context.now
    certain = (noted is not None and noted.status == "True") or context.now >= since + _PATIENCE
    conditions = set_condition(
        conditions,
        PROOF_MISSING,
        "True" if certain else "False",
        reason=f"{finding.absent.kind.kind}NotFound",
        message=finding.verdict.message,
        now=context.now,
    )
    return {"conditions": conditions}, None if certain else since + _PATIENCE


def _reported(finding: Finding) -> StatusFields:
    """Return what the controller reports that is waited for; nothing where it was not looked at."""
    if finding.delegated is None:
        return {}
    return {"delegated_to": finding.delegated.to, "delegated_status": finding.delegated.status}
