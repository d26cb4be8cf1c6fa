"""The evidence that a promotion leaves when it ends: gates, images, people and times (pure).

Names of people come from a host, or from a repository whose writers may put any text there, so they are cut to the
length that the schema allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice

from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.evidence import MAX_APPROVERS, MAX_METRICS, Evidence, GateResult, PhaseDurations, bounded
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.api.resolved import with_known_digest
from kardinal.promotion.steps.declaration import PlannedStep
from kardinal.promotion.steps.facts import facts_of
from kardinal.promotion.steps.images import selected_images

__all__ = ["evidence_of", "phase_durations"]

_NAME_LIMIT = 256
"""The most characters that the schema allows for the name of a person."""

_PHASES = {"WaitingForMerge": "waiting_for_merge", "HealthChecking": "health_checking"}


def evidence_of(
    step: PromotionStep,
    bundle: Bundle,
    status: PromotionStepStatus,
    sequence: Sequence[PlannedStep],
    *,
    gates: Sequence[GateResult],
    metrics: Mapping[str, float],
    gate_duration: timedelta | None,
    now: datetime,
) -> Evidence:
    """Return the evidence of a promotion that ends now.

    If a review is required and the host has no reviews, a merge by a person is the approval; one by the agent is not.
    """
    facts = facts_of(status, sequence)
    merged_by = str(facts.merged_by)[:_NAME_LIMIT] if facts.merged_by else None
    approvers = [str(name)[:_NAME_LIMIT] for name in facts.approved_by or ()][:MAX_APPROVERS]
    if not approvers and merged_by and step.spec.approval == "pr-review":
        approvers = [merged_by]
    return bounded(
        Evidence(
            metrics=dict(islice(metrics.items(), MAX_METRICS)),
            gate_duration=gate_duration,
            durations=phase_durations(status, sequence, now=now),
            approved_by=tuple(approvers),
            merged_by=merged_by,
            images=_images(step, bundle) or None,
            policy_gates=tuple(gates),
        )
    )


def _images(step: PromotionStep, bundle: Bundle) -> tuple[str, ...]:
    """Return the promoted images; empty if they cannot be read, which is why such a promotion fails."""
    try:
        images = [image.reference for image in selected_images(bundle, step.spec.update.images)]
    except KardinalError:
        return ()
    return tuple(str(with_known_digest(image, bundle.status.artifacts)) for image in images)


def phase_durations(
    status: PromotionStepStatus, sequence: Sequence[PlannedStep], *, now: datetime
) -> PhaseDurations | None:
    """Return how long each phase took until now; None for a promotion that has not begun.

    A merge is noticed after it has happened; the time between counts as proof.
    """
    if status.started_at is None:
        return None
    spans: dict[str, timedelta] = {}
    began = status.started_at
    for progress, planned in zip(status.steps, sequence, strict=False):
        state = planned.declaration.state
        ended = progress.finished_at or now
        if state == "WaitingForMerge" and status.merged_at is not None:
            ended = min(ended, status.merged_at)
        ended = max(began, ended)
        phase = _PHASES.get(state, "promoting")
        spans[phase] = spans.get(phase, timedelta()) + (ended - began)
        began = ended
    return PhaseDurations(**spans) if spans else None
