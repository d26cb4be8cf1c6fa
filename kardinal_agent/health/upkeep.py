"""Decide from a look at a Verified environment whether it still is healthy (pure).

    healthy ── negative for degradedAfter ──► Degraded ── healthy ──► healthy, and the soak starts anew
       └────── unseen for degradedAfter ────► unseen ──── seen ─────► healthy, and the soak goes on

A verdict is negative if the tool or the workload itself reports a failure. A rollout, missing replicas and a difference
from Git are not negative, and change nothing. An environment that cannot be read (unseen) holds the environments after
it, too, but keeps its soak: only the time since it was last seen does not count.

The duration of a trouble is measured by the monotonic clock, and starts again after a restart of the agent. The status
is written on transitions only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from kardinal.objects.conditions import Truth
from kardinal.promotion.api import set_condition
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.policy.soak import healthy_time
from kardinal.runtime.timers import remaining
from kardinal_agent.health.checks import CheckResult

__all__ = ["DEGRADED", "UNSEEN", "Outlook", "Trouble", "outlook"]

DEGRADED = "Degraded"
"""The condition of a Verified PromotionStep: True while the environment is unhealthy, Unknown while it is unseen."""

UNSEEN = "CannotBeSeen"
"""The reason of the condition Degraded while it is Unknown."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A negative or unseen state that all checks since `since` have found."""

    kind: Literal["negative", "unseen"]
    since: datetime
    began: float
    """Seconds of the monotonic clock at `since`."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The result of a check: the status, unchanged unless it has to be written, and the trouble so far."""

    status: PromotionStepStatus
    trouble: Trouble | None = None
    again: timedelta | None = None
    """The time until the next check, even if no object changes; None if only a change leads to one."""


def outlook(
    status: PromotionStepStatus,
    finding: CheckResult,
    trouble: Trouble | None,
    *,
    now: datetime,
    monotonic: float,
    degraded_after: timedelta,
) -> Outlook:
    """Return the result of a check of a Verified environment; `trouble` is that of the check before."""
    kind = _kind(finding)
    if kind is None:
        return Outlook(_recovered(status, finding, now=now), again=finding.again)
    if trouble is None or trouble.kind != kind:
        trouble = Trouble(kind, now, monotonic)
    if _truth(status) in (("True",) if kind == "negative" else ("True", "Unknown")):
        return Outlook(status, trouble, finding.again)
    if wait := remaining(degraded_after.total_seconds() - (monotonic - trouble.began)):
        return Outlook(status, trouble, min(wait, finding.again) if finding.again is not None else wait)
    if kind == "negative":
        return Outlook(_degraded(status, finding, now=now), trouble, finding.again)
    return Outlook(_unseen(status, finding, since=trouble.since, now=now), trouble, finding.again)


def _kind(finding: CheckResult) -> Literal["negative", "unseen"] | None:
    if finding.unreadable:
        return "unseen"
    return "negative" if finding.verdict.negative else None


def _truth(status: PromotionStepStatus) -> Truth:
    condition = status.condition(DEGRADED)
    return condition.status if condition is not None else "False"


def _degraded(status: PromotionStepStatus, finding: CheckResult, *, now: datetime) -> PromotionStepStatus:
    update = {"healthy": False, "healthy_since": None, "healthy_for": None}
    reason = finding.verdict.reason or "Unhealthy"
    return _told(status.model_copy(update=update), "True", reason, finding.verdict.message, now=now)


def _unseen(
    status: PromotionStepStatus, finding: CheckResult, *, since: datetime, now: datetime
) -> PromotionStepStatus:
    time = healthy_time(status)
    update = {"healthy": False, "healthy_since": None, "healthy_for": time.at(since) if time is not None else None}
    return _told(status.model_copy(update=update), "Unknown", UNSEEN, finding.verdict.message, now=now)


def _recovered(status: PromotionStepStatus, finding: CheckResult, *, now: datetime) -> PromotionStepStatus:
    """Return the status after a check without trouble; only a healthy verdict ends Degraded."""
    if status.healthy is not False or (_truth(status) == "True" and finding.verdict.state != "healthy"):
        return status
    found = status.model_copy(update={"healthy": True, "healthy_since": now})
    return _told(found, "False", "Healthy", finding.verdict.message, now=now)


def _told(
    status: PromotionStepStatus, truth: Truth, reason: str, message: str, *, now: datetime
) -> PromotionStepStatus:
    conditions = set_condition(status.conditions, DEGRADED, truth, reason=reason, message=message, now=now)
    return status.model_copy(update={"conditions": conditions})
