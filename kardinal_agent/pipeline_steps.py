"""Make the PromotionSteps that a Bundle of a Pipeline would get, to check the repository before any promotion."""

from __future__ import annotations

from collections.abc import Iterable

from kardinal.models.base import ObjectMeta
from kardinal.promotion.api import Pipeline, PromotionStep
from kardinal.promotion.api.names import step_name
from kardinal.promotion.translation.nodes import PromotedBundle, step_spec

__all__ = ["steps_of"]


def steps_of(pipeline: Pipeline, environments: Iterable[str]) -> list[PromotionStep]:
    """Return a PromotionStep for each of these environments, as a Bundle would get it."""
    promotion = PromotedBundle(pipeline.metadata.namespace, pipeline.metadata.name, pipeline.metadata.name)
    known = {environment.name: environment for environment in pipeline.spec.environments}
    return [
        PromotionStep(
            metadata=ObjectMeta(name=step_name(promotion.bundle, name), namespace=promotion.namespace),
            spec=step_spec(promotion, known[name], pipeline.spec),
        )
        for name in environments
    ]
