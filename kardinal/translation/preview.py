"""The promotions of a Bundle without a Graph: what each environment would be given, as values."""

from __future__ import annotations

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.api.base import ObjectMeta
from kardinal.api.names import step_name
from kardinal.translation.errors import InvalidSpec
from kardinal.translation.nodes import Promotion, step_spec
from kardinal.translation.repository import Features
from kardinal.translation.route import find_route
from kardinal.translation.validation import bundle_problems, chart_problems, pipeline_problems

__all__ = ["preview"]


def preview(pipeline: Pipeline, bundle: Bundle, *, features: Features) -> list[PromotionStep]:
    """Return the PromotionSteps that a Bundle would get, in order. Raises `InvalidSpec` with every problem."""
    problems = [*pipeline_problems(pipeline, features), *bundle_problems(bundle)]
    try:
        route = find_route(pipeline, bundle)
    except InvalidSpec as invalid:
        raise InvalidSpec([*invalid.problems, *problems]) from None
    environments = {environment.name: environment for environment in pipeline.spec.environments}
    problems += chart_problems(bundle, [environments[name] for name in route.upstreams])
    if problems:
        raise InvalidSpec(problems)
    promotion = Promotion(bundle.metadata.namespace, pipeline.metadata.name, bundle.metadata.name)
    return [
        PromotionStep(
            metadata=ObjectMeta(name=step_name(promotion.bundle, name), namespace=promotion.namespace),
            spec=step_spec(promotion, environments[name], pipeline.spec),
        )
        for name in route.upstreams
    ]
