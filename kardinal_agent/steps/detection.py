"""Decide which objects prove an environment whose Pipeline names none, before the first effect.

The decision is noted in the status and stays. If several objects deploy the environment, or the workloads of its
namespace may not be read, the promotion fails here, because after the landing it would be too late to ask its author.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health import HealthStatus
from kardinal.promotion.api.health_adapters import NO_DELEGATE
from kardinal.promotion.api.health_fields import proof_without_tool
from kardinal_agent.errors import StepFailed
from kardinal_agent.health import PIPELINES_FROM, Detected, Detection, ObjectUnreadable
from kardinal_agent.steps.base import Announcement, Done, StepContext, Waiting

__all__ = ["DETECT_AGAIN", "NOT_DETECTED", "detect"]

DETECT_AGAIN = timedelta(seconds=5)
"""The interval of detection while the objects cannot be read."""

NOT_DETECTED = "HealthNotDetected"
"""The reason of the Event about an environment that is proved by workloads, because no tool was found."""

_SHOWN = 8
"""The most objects that are named if there are several."""


async def detect(context: StepContext) -> Done | Waiting:
    """Return the status with the detected object; raises `StepFailed` if no single proof can be chosen."""
    step = context.step
    try:
        detection = await context.health.detect(step)
    except ObjectUnreadable as error:
        return Waiting(f"finds out what proves the environment: {error}")
    if len(detection.found) > 1:
        raise StepFailed("InvalidSpec", _several(step, detection.found))
    delegate = step.spec.delivery.delegate
    chosen = [each.status for each in detection.found] or [HealthStatus(type=proof_without_tool(delegate))]
    noted = step.model_copy(update={"status": context.status.model_copy(update={"health": chosen[0]})})
    if problem := context.health.refusal(noted):
        raise StepFailed("InvalidSpec", problem)
    warning = None
    if not detection.found and delegate == NO_DELEGATE:
        warning = Announcement(NOT_DETECTED, _nothing(step, detection), warning=True)
    return Done("found what proves the environment", update={"health": chosen[0]}, announcement=warning)


def _several(step: PromotionStep, found: Sequence[Detected]) -> str:
    listed = [each.title for each in found[:_SHOWN]] + (["…"] if len(found) > _SHOWN else [])
    return (
        f"several objects deploy {step.spec.path} of branch {step.spec.target_branch}: {', '.join(listed)}: "
        f"name the one that proves the environment in health.{found[0].tool}"
    )


def _nothing(step: PromotionStep, detection: Detection) -> str:
    own = step.metadata.namespace
    unread = f" ({', '.join(detection.forbidden)} may not be listed and watched)" if detection.forbidden else ""
    return (
        f"no Application of Argo CD, and no Kustomization or HelmRelease of Flux, of namespace {own}, or of one with "
        f"the annotation {PIPELINES_FROM}: {own}, deploys {step.spec.path}{unread}: the workloads in namespace "
        f"{step.spec.environment} prove it; say so with health.type: resource, or name the object that does"
    )
