"""Decide from a look at a Verified environment whether it still is healthy (pure).

    healthy ── negative for degradedAfter ──► Degraded ── healthy ──► healthy, and the soak starts anew
       └────── unseen for degradedAfter ────► unseen ──── seen ─────► healthy, and the soak goes on

Negative is what the tool or the workload itself calls a failure. A rollout, a lack of some replicas and a difference
from Git are not, and change nothing. What cannot be seen holds what follows as well, but it takes no soak away: the
time from when it was last seen is not counted.

How long a trouble lasts is measured by a clock that is never set, and is forgotten by a restart; what is written is
written on transitions alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from kardinal.api import set_condition
from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.objects.conditions import Truth
from kardinal.policy.soak import healthy_time
from kardinal_agent.health.checks import Finding

__all__ = ["DEGRADED", "UNSEEN", "Outlook", "Trouble", "outlook"]

DEGRADED = "Degraded"
"""The condition of a PromotionStep: True while what was Verified is unhealthy, Unknown while it cannot be seen."""

UNSEEN = "CannotBeSeen"
"""The reason of the condition where it is Unknown."""

_INSTANT = 0.001
"""Seconds below which a timer has fired: sums of floats do not meet exactly."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that every look so far has found."""

    kind: Literal["negative", "unseen"]
    since: datetime
    began: float
    """Seconds of the monotonic clock at `since`."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The consequence of a look: the status, which is the one before unless it is to be written."""

    status: PromotionStepStatus
    trouble: Trouble | None = None
    again: timedelta | None = None
    """When to look again even if nothing happens."""


def outlook(
    status: PromotionStepStatus,
    finding: Finding,
    trouble: Trouble | None,
    *,
    now: datetime,
    monotonic: float,
    degraded_after: timedelta,
) -> Outlook:
    """Return what follows from a look at an environment that is Verified; `trouble` is what the last look left."""
    kind = _kind(finding)
    if kind is None:
        return Outlook(_recovered(status, finding, now=now), again=finding.again)
    if trouble is None or trouble.kind != kind:
        trouble = Trouble(kind, now, monotonic)
    if _truth(status) in (("True",) if kind == "negative" else ("True", "Unknown")):
        return Outlook(status, trouble, finding.again)
    left = degraded_after.total_seconds() - (monotonic - trouble.began)
    if left > _INSTANT:
        wait = timedelta(seconds=left)
        return Outlook(status, trouble, min(wait, finding.again) if finding.again is not None else wait)
    if kind == "negative":
        return Outlook(_degraded(status, finding, now=now), trouble, finding.again)
    return Outlook(_unseen(status, finding, since=trouble.since, now=now), trouble, finding.again)


def _kind(finding: Finding) -> Literal["negative", "unseen"] | None:
    if finding.unreadable:
        return "unseen"
    return "negative" if finding.verdict.negative else None


def _truth(status: PromotionStepStatus) -> Truth:
    condition = status.condition(DEGRADED)
    return condition.status if condition is not None else "False"


def _degraded(status: PromotionStepStatus, finding: Finding, *, now: datetime) -> PromotionStepStatus:
    update = {"healthy": False, "healthy_since": None, "healthy_for": None}
    reason = finding.verdict.reason or "Unhealthy"
    return _told(status.model_copy(update=update), "True", reason, finding.verdict.message, now=now)


def _unseen(status: PromotionStepStatus, finding: Finding, *, since: datetime, now: datetime) -> PromotionStepStatus:
    time = healthy_time(status)
    update = {"healthy": False, "healthy_since": None, "healthy_for": time.at(since) if time is not None else None}
    return _told(status.model_copy(update=update), "Unknown", UNSEEN, finding.verdict.message, now=now)


def _recovered(status: PromotionStepStatus, finding: Finding, *, now: datetime) -> PromotionStepStatus:
    """Return the status after a look that found nothing wrong: Degraded ends with a proof, and with nothing less."""
    if status.healthy is not False or (_truth(status) == "True" and finding.verdict.state != "healthy"):
        return status
    found = status.model_copy(update={"healthy": True, "healthy_since": now})
    return _told(found, "False", "Healthy", finding.verdict.message, now=now)


def _told(
    status: PromotionStepStatus, truth: Truth, reason: str, message: str, *, now: datetime
) -> PromotionStepStatus:
    conditions = set_condition(status.conditions, DEGRADED, truth, reason=reason, message=message, now=now)
    return status.model_copy(update={"conditions": conditions})
