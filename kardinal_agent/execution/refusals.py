"""Why an order cannot be executed as written.

Translation refuses all of this before there is an order; an order made by hand meets it here. It is refused and never
shortened: a choice that is silently ignored ends in an environment that is Verified without having been.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.api import Bundle, PromotionStep
from kardinal.api.image import image_problems
from kardinal.api.pipeline import StepSpec
from kardinal.api.promotion_step import PromotionStepSpec
from kardinal.api.supported import unsupported_choices
from kardinal.steps.sequence import default_sequence, sequence_problems

__all__ = ["refusal", "sequence_of"]


def sequence_of(spec: PromotionStepSpec) -> Sequence[StepSpec]:
    """The steps of an order: its own, or those its approval asks for."""
    return spec.steps or default_sequence(approval=spec.approval, pr=spec.pr, strategy=spec.update.strategy)


def refusal(step: PromotionStep, bundle: Bundle) -> str | None:
    """The first thing that is wrong, with its field; None when the order can be executed."""
    return next(iter(_refusals(step.spec, bundle)), None)


def _refusals(spec: PromotionStepSpec, bundle: Bundle) -> Iterable[str]:
    bundle_name = f"bundle {bundle.metadata.name}"
    for choice in unsupported_choices(spec, field=""):
        yield f"{choice.field}: {choice.message}"
    for choice in unsupported_choices(bundle.spec, field="spec"):
        yield f"{bundle_name}: {choice.field}: {choice.message}"
    if not bundle.spec.artifacts.images:
        yield f"{bundle_name}: spec.artifacts.images: there is nothing to promote"
    for field, message in image_problems(bundle.spec.artifacts):
        yield f"{bundle_name}: spec.{field}: {message}"
    steps = sequence_of(spec)
    for problem in sequence_problems(steps, approval=spec.approval, pr=spec.pr, provider=spec.git.provider):
        yield f"{problem.field}: {problem.message}"
