"""The PromotionSteps of a Pipeline as a Bundle would get them, to look at its repository while nothing is promoted."""

from __future__ import annotations

from collections.abc import Iterable

from kardinal.api import Pipeline, PromotionStep
from kardinal.api.base import ObjectMeta
from kardinal.api.names import step_name
from kardinal.translation.nodes import Promotion, step_spec

__all__ = ["steps_of"]


def steps_of(pipeline: Pipeline, environments: Iterable[str]) -> list[PromotionStep]:
    """Return a PromotionStep for each of these environments, as a Bundle would get it."""
    promotion = Promotion(pipeline.metadata.namespace, pipeline.metadata.name, pipeline.metadata.name)
    known = {environment.name: environment for environment in pipeline.spec.environments}
    return [
        PromotionStep(
            metadata=ObjectMeta(name=step_name(promotion.bundle, name), namespace=promotion.namespace),
            spec=step_spec(promotion, known[name], pipeline.spec),
        )
        for name in environments
    ]
