"""Adapter `resource`: the Deployment itself, watched in the agent's own cluster."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.api import PromotionStep
from kardinal.api.image import ImageReference
from kardinal.api.pipeline import HealthResource
from kardinal.api.promotion_step import PromotionStepSpec
from kardinal.objects import Key
from kardinal.runtime import Informer
from kardinal_agent.health.deployment import evaluate
from kardinal_agent.health.verdict import Verdict

__all__ = ["ResourceHealth", "deployment_key"]


def deployment_key(spec: PromotionStepSpec) -> Key:
    """The Deployment that speaks for an environment: by default the pipeline's name in the environment's namespace."""
    resource = spec.health.resource or HealthResource()
    return Key(resource.namespace or spec.environment, resource.name or spec.pipeline)


class ResourceHealth:
    """Answers from the watched Deployments."""

    def __init__(self, deployments: Informer) -> None:
        self._deployments = deployments

    def check(self, step: PromotionStep, images: Sequence[ImageReference]) -> Verdict:
        key = deployment_key(step.spec)
        return evaluate(self._deployments.get(*key), images, name=str(key))
