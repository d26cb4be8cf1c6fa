"""The promotions of a Bundle without a Graph: what each environment would be given, as values."""

from __future__ import annotations

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.api.base import ObjectMeta
from kardinal.api.names import step_name
from kardinal.translation.bundle_fit import fit_problems
from kardinal.translation.errors import InvalidSpec
from kardinal.translation.nodes import Promotion, step_spec
from kardinal.translation.repository import Features
from kardinal.translation.route import find_route
from kardinal.translation.validation import bundle_problems, pipeline_problems

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
    promotion = Promotion(bundle.metadata.namespace, pipeline.metadata.name, bundle.metadata.name, kinds)
    return [
        PromotionStep(
            metadata=ObjectMeta(name=step_name(promotion.bundle, name), namespace=promotion.namespace),
            spec=step_spec(promotion, environments[name], pipeline.spec),
        )
        for name in route.upstreams
    ]
