"""Why an order cannot be executed as written.

Translation refuses all of this before there is an order; an order made by hand meets it here. It is refused and never
shortened: a choice that is silently ignored ends in an environment that is Verified without having been.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.api import Bundle, PromotionStep
from kardinal.api.image import ImageReferenceError, promoted_images
from kardinal.api.pipeline import StepSpec
from kardinal.api.promotion_step import PromotionStepSpec
from kardinal.steps.sequence import default_sequence, sequence_problems

__all__ = ["refusal", "sequence_of"]


def sequence_of(spec: PromotionStepSpec) -> Sequence[StepSpec]:
    """The steps of an order: its own, or those its approval asks for."""
    return spec.steps or default_sequence(approval=spec.approval, pr=spec.pr, strategy=spec.update.strategy)


def refusal(step: PromotionStep, bundle: Bundle) -> str | None:
    """The first thing that is wrong, with its field; None when the order can be executed."""
    return next(iter(_refusals(step.spec, bundle)), None)


def _refusals(spec: PromotionStepSpec, bundle: Bundle) -> Iterable[str]:
    choices = [
        ("git.provider", spec.git.provider, ("git", "local")),
        ("git.layout", spec.git.layout, ("directory",)),
        ("update.strategy", spec.update.strategy, ("kustomize",)),
        ("health.type", spec.health.type, (None, "resource")),
        ("health.cluster", spec.health.cluster, (None,)),
        ("delivery.delegate", spec.delivery.delegate, ("none",)),
        (f"bundle {bundle.metadata.name}: spec.type", bundle.spec.type, ("image",)),
    ]
    for field, value, executed in choices:
        if value not in executed:
            yield f"{field}: {value!r} is not available in this version"
    if not bundle.spec.artifacts.images:
        yield f"bundle {bundle.metadata.name}: spec.artifacts.images: there is nothing to promote"
    try:
        promoted_images(bundle.spec.artifacts)
    except ImageReferenceError as error:
        yield f"bundle {bundle.metadata.name}: {error}"
    steps = sequence_of(spec)
    for problem in sequence_problems(steps, approval=spec.approval, pr=spec.pr, provider=spec.git.provider):
        yield f"{problem.field}: {problem.message}"
