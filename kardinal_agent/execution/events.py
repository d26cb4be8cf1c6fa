"""Derive the Events and metrics of a promotion from the changes of its status alone.

`events_of` and `figures_of` are functions of one transition, so that they can be tested without a server.
`PromotionEvents` records and counts their results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.promotion_step import NOT_ASSIGNED, PROOF_MISSING, PromotionStepStatus
from kardinal.runtime import EventRecorder
from kardinal_agent.execution.decide import SUPERSEDED
from kardinal_agent.health.upkeep import DEGRADED, UNSEEN
from kardinal_agent.metrics import AgentMetrics, Figure
from kardinal_agent.steps import MERGED_OUT_OF_BAND, PULL_REQUEST_OPENED, Announcement

__all__ = ["PromotionEvent", "PromotionEvents", "Transition", "events_of", "figures_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One change of the status of a promotion, with the Event that a step asks for."""

    step: PromotionStep
    bundle: Bundle
    before: PromotionStepStatus
    after: PromotionStepStatus
    now: datetime
    announcement: Announcement | None = None


@dataclass(frozen=True, slots=True)
class PromotionEvent:
    """A Kubernetes Event about a PromotionStep."""

    type: Literal["Normal", "Warning"]
    reason: str
    note: str


def events_of(transition: Transition) -> Iterable[PromotionEvent]:
    """Return the Events of a transition."""
    before = transition.before
    after = transition.after
    message = after.message or ""
    if (announced := transition.announcement) is not None:
        yield PromotionEvent("Warning" if announced.warning else "Normal", announced.reason, announced.note)
    if _is_held(after) and message != before.message:
        yield PromotionEvent("Normal", "Held", message)
    for name in (PROOF_MISSING, NOT_ASSIGNED):
        missing = after.condition(name)
        known = before.condition(name)
        if missing is not None and missing.status == "True" and (known is None or known.status != "True"):
            yield PromotionEvent("Warning", name, missing.message)
    if after.retry is not None and after.retry != before.retry and after.retry.attempts == 1:
        # The attempts after the first one would only repeat it; the status has their number.
        yield PromotionEvent("Warning", "Retrying", after.retry.last_error)
    if _has_ended(transition) and after.state != "Verified":
        # A verification is told of the Bundle, with who approved it.
        reason = _reason(after)
        yield PromotionEvent("Normal" if reason == SUPERSEDED else "Warning", reason, message)
    if before.has_ended:
        yield from _health_events(before, after)


def _health_events(before: PromotionStepStatus, after: PromotionStepStatus) -> Iterable[PromotionEvent]:
    """Yield the Event of a Verified environment that is no longer healthy, or is healthy again."""
    old = before.condition(DEGRADED)
    new = after.condition(DEGRADED)
    if new is None or (old is not None and old.status == new.status):
        return
    match new.status:
        case "True":
            yield PromotionEvent("Warning", DEGRADED, f"no longer healthy: {new.message}")
        case "Unknown":
            yield PromotionEvent("Warning", UNSEEN, new.message)
        case "False":
            yield PromotionEvent("Normal", "HealthyAgain", new.message)


def figures_of(transition: Transition) -> Iterable[Figure]:
    """Return the figures that a transition adds to the metrics."""
    before = transition.before
    after = transition.after
    spec = transition.step.spec
    environment = spec.environment
    if transition.announcement is not None and transition.announcement.reason == PULL_REQUEST_OPENED:
        yield Figure("opened", (environment, spec.approval))
    if after.merged_at is not None and before.merged_at is None:
        yield Figure("merged", (environment,))
    if transition.announcement is not None and transition.announcement.reason == MERGED_OUT_OF_BAND:
        yield Figure("out_of_band", (environment,))
    if not _has_ended(transition):
        return
    verified = after.state == "Verified"
    reason = _reason(after)
    if not verified and reason != SUPERSEDED:
        yield Figure("failed", (environment, reason))
    if after.health_deadline is not None and spec.health.timeout is not None:
        began = after.health_deadline - spec.health.timeout
        yield Figure("health", (environment, "healthy" if verified else "failed"), _seconds(began, transition.now))
    created = transition.bundle.metadata.creation_timestamp
    if verified and created is not None:
        yield Figure("lead_time", (environment,), _seconds(created, transition.now))


def _is_held(status: PromotionStepStatus) -> bool:
    condition = status.condition("Held")
    return condition is not None and condition.status == "True" and condition.message == status.message


def _has_ended(transition: Transition) -> bool:
    return transition.after.has_ended and not transition.before.has_ended


def _reason(status: PromotionStepStatus) -> str:
    """Return the reason of the condition Ready, which says why the promotion ended."""
    ready = status.condition("Ready")
    return ready.reason if ready is not None else str(status.state)


def _seconds(began: datetime, ended: datetime) -> float:
    return max((ended - began).total_seconds(), 0.0)


class PromotionEvents:
    """Records the Events and metrics of transitions."""

    def __init__(self, recorder: EventRecorder, metrics: AgentMetrics) -> None:
        self._recorder = recorder
        self._metrics = metrics

    def record(self, raw: JsonObject, transition: Transition) -> None:
        """Record a transition of the PromotionStep `raw`; returns at once."""
        for event in events_of(transition):
            self._recorder.event(raw, type=event.type, reason=event.reason, note=event.note)
        for figure in figures_of(transition):
            self._metrics.promotion(figure, namespace=transition.step.metadata.namespace)
