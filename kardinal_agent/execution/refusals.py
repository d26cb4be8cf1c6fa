"""Why a PromotionStep cannot be executed as written.

Translation refuses all of this before there is a PromotionStep; one that is made by hand is refused here. Nothing is
ignored: a choice that is silently left out ends in an environment that is Verified without having been. And nothing is
filled in: translation resolves every default, so that what an agent does stands in the PromotionStep.
"""

from __future__ import annotations

from collections.abc import Iterable

from kardinal.api import Bundle, PromotionStep
from kardinal.api.artifacts import artifact_problems
from kardinal.api.health import HealthResource
from kardinal.api.promotion_step import PromotionStepSpec
from kardinal.api.supported import unsupported_choices
from kardinal.steps.config_merge import several_merges
from kardinal.steps.health_fields import health_problems, is_detected
from kardinal.steps.registry import Registry
from kardinal.steps.sequence import sequence_problems, without_taker
from kardinal_agent.health import HealthChecks

__all__ = ["refusal"]


def refusal(step: PromotionStep, bundle: Bundle, registry: Registry, health: HealthChecks) -> str | None:
    """Return the first thing that is wrong, with its field; None when the PromotionStep can be executed."""
    return next(iter(_refusals(step.spec, bundle, registry)), None) or health.refusal(step)


def _refusals(spec: PromotionStepSpec, bundle: Bundle, registry: Registry) -> Iterable[str]:
    bundle_name = f"bundle {bundle.metadata.name}"
    for choice in unsupported_choices(spec, field=""):
        yield f"{choice.field}: {choice.message}"
    for field in _missing(spec):
        yield f"{field}: is missing; only a Pipeline may leave it out, a PromotionStep states every value"
    for choice in unsupported_choices(bundle.spec, field="spec"):
        yield f"{bundle_name}: {choice.field}: {choice.message}"
    for problem in artifact_problems(bundle.spec.type, bundle.spec.artifacts):
        yield f"{bundle_name}: spec.{problem.field}: {problem.message}"
    capabilities = registry.providers.get(spec.git.provider)
    if capabilities is None:
        yield f"git.provider: {spec.git.provider!r} is not available in this version"
        return
    if spec.health.type is not None and spec.health.type not in registry.adapters:
        yield f"health.type: {spec.health.type!r} is not available in this version"
    for field, message in health_problems(spec.health, delegate=spec.delivery.delegate):
        yield f"health.{field}: {message}"
    for wrong in sequence_problems(
        spec.steps, approval=spec.approval, pr=spec.pr, capabilities=capabilities, table=registry.steps
    ):
        yield f"{wrong.field}: {wrong.message}"
    if spec.branch is not None and (twice := several_merges(spec.steps)):
        yield f"steps: {twice}"
    if (spec.branch is not None) != (spec.git.layout == "branch"):
        yield "branch: is that of an environment with git.layout: branch, which needs one, and of no other"
    for kind in without_taker(spec.steps, registry.steps, bundle.spec.artifacts.kinds):
        yield f"steps: none of them brings the {kind} of bundle {bundle.metadata.name}"


def _missing(spec: PromotionStepSpec) -> Iterable[str]:
    """Return the fields without a value that a Pipeline may leave out and a PromotionStep may not."""
    health = spec.health
    values: dict[str, object] = {"steps": spec.steps, "health.timeout": health.timeout}
    if health.type == "resource":
        values["health.resource.namespace"] = (health.resource or HealthResource()).namespace
    elif not is_detected(health, delegate=spec.delivery.delegate):
        values["health.type"] = health.type
    if spec.delivery.delegate == "argoRollouts":
        values["health.argoRollouts"] = health.argo_rollouts
    elif spec.delivery.delegate == "flagger":
        values["health.flagger"] = health.flagger
    return (field for field, value in values.items() if value is None or value == ())
