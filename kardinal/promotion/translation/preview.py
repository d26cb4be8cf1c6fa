"""The PromotionSteps of a Bundle without a Graph and without an API server, as values."""

from __future__ import annotations

from kardinal.models.base import ObjectMeta
from kardinal.promotion.api import Bundle, Pipeline, PromotionStep
from kardinal.promotion.api.names import step_name
from kardinal.promotion.translation.bundle_fit import fit_problems
from kardinal.promotion.translation.errors import InvalidSpec
from kardinal.promotion.translation.nodes import PromotedBundle, step_spec
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.route import find_route
from kardinal.promotion.translation.validation import bundle_problems, pipeline_problems

__all__ = ["preview"]


def preview(pipeline: Pipeline, bundle: Bundle, *, features: Features) -> list[PromotionStep]:
    """Return the PromotionSteps that a Bundle would get, in order. Raises `InvalidSpec` with every problem."""
    problems = [*pipeline_problems(pipeline, features), *bundle_problems(bundle)]
    try:
        route = find_route(pipeline, bundle)
    except InvalidSpec as invalid:
        raise InvalidSpec([*invalid.problems, *problems]) from None
    environments = {environment.name: environment for environment in pipeline.spec.environments}
    if not problems:
        there = [environments[name] for name in route.upstreams]
        problems += fit_problems(bundle, pipeline.spec.git, there, features.registry.steps)
    if problems:
        raise InvalidSpec(problems)
    kinds = bundle.spec.artifacts.kinds
    promotion = PromotedBundle(bundle.metadata.namespace, pipeline.metadata.name, bundle.metadata.name, kinds)
    return [
        PromotionStep(
            metadata=ObjectMeta(name=step_name(promotion.bundle, name), namespace=promotion.namespace),
            spec=step_spec(promotion, environments[name], pipeline.spec),
        )
        for name in route.upstreams
    ]
