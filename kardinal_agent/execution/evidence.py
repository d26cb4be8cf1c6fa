"""The evidence that a promotion leaves when it ends: gates, images, people and times (pure).

Names of people come from a host, or from a repository whose writers may put any text there: they are cut to what the
schema takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from kardinal.api import Bundle, PromotionStep
from kardinal.api.evidence import MAX_APPROVERS, Evidence, GateResult, PhaseDurations, bounded
from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.api.resolved import with_known_digest
from kardinal.objects.errors import KardinalError
from kardinal.steps.declaration import PlannedStep
from kardinal.steps.facts import facts_of
from kardinal.steps.images import selected_images

__all__ = ["evidence_of", "phase_durations"]

_NAME_LIMIT = 256
"""Characters that the schema allows for the name of a person."""

_PHASES = {"WaitingForMerge": "waiting_for_merge", "HealthChecking": "health_checking"}


def evidence_of(
    step: PromotionStep,
    bundle: Bundle,
    status: PromotionStepStatus,
    sequence: Sequence[PlannedStep],
    *,
    gates: Sequence[GateResult],
    gate_duration: timedelta | None,
    now: datetime,
) -> Evidence:
    """Return what a promotion that ends now can show for itself.

    Where a review is asked for and the host knows no reviews, merging is the approval; a merge by the agent approves
    nothing.
    """
    facts = facts_of(status, sequence)
    merged_by = str(facts.merged_by)[:_NAME_LIMIT] if facts.merged_by else None
    approvers = [str(name)[:_NAME_LIMIT] for name in facts.approved_by or ()][:MAX_APPROVERS]
    if not approvers and merged_by and step.spec.approval == "pr-review":
        approvers = [merged_by]
    return bounded(
        Evidence(
            gate_duration=gate_duration,
            durations=phase_durations(status, sequence, now=now),
            approved_by=tuple(approvers),
            merged_by=merged_by,
            images=_images(step, bundle) or None,
            policy_gates=tuple(gates),
        )
    )


def _images(step: PromotionStep, bundle: Bundle) -> tuple[str, ...]:
    """Return the images that are promoted here; none of a promotion that fails because they cannot be read."""
    try:
        images = [image.reference for image in selected_images(bundle, step.spec.update.images)]
    except KardinalError:
        return ()
    return tuple(str(with_known_digest(image, bundle.status.artifacts)) for image in images)


def phase_durations(
    status: PromotionStepStatus, sequence: Sequence[PlannedStep], *, now: datetime
) -> PhaseDurations | None:
    """Return how long each phase took until now; None for a promotion that has not begun.

    A merge is noticed after it has happened: the time between belongs to the proof.
    """
    if status.started_at is None:
        return None
    spans: dict[str, timedelta] = {}
    began = status.started_at
    for progress, planned in zip(status.steps, sequence, strict=False):
        state, ended = planned.declaration.state, progress.finished_at or now
        if state == "WaitingForMerge" and status.merged_at is not None:
            ended = min(ended, status.merged_at)
        ended = max(began, ended)
        phase = _PHASES.get(state, "promoting")
        spans[phase] = spans.get(phase, timedelta()) + (ended - began)
        began = ended
    return PhaseDurations(**spans) if spans else None
