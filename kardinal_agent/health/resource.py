"""Adapter `resource`: the Deployment itself, watched in the agent's own cluster."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.api import PromotionStep
from kardinal.api.image import ImageReference
from kardinal.api.promotion_step import PromotionStepSpec
from kardinal.objects import Key
from kardinal.runtime import Informer
from kardinal_agent.health.deployment import evaluate
from kardinal_agent.health.namespaces import PIPELINES_FROM, HealthNamespaces
from kardinal_agent.health.verdict import Verdict

__all__ = ["ResourceHealth", "deployment_key"]


def deployment_key(spec: PromotionStepSpec) -> Key | None:
    """Return the Deployment that the environment is judged by; None where the PromotionStep does not name it."""
    resource = spec.health.resource
    if resource is None or resource.name is None or resource.namespace is None:
        return None
    return Key(resource.namespace, resource.name)


class ResourceHealth:
    """Answers from the watched Deployments."""

    def __init__(self, deployments: Informer, namespaces: HealthNamespaces) -> None:
        self._deployments = deployments
        self._namespaces = namespaces

    def refusal(self, step: PromotionStep) -> str | None:
        key = deployment_key(step.spec)
        problem = self._namespaces.refusal(key.namespace) if key is not None else None
        return f"health.resource.namespace: {problem}" if problem is not None else None

    def check(self, step: PromotionStep, images: Sequence[ImageReference]) -> Verdict:
        key = deployment_key(step.spec)
        if key is None:
            return Verdict(False, "health.resource names no Deployment")
        deployment, reader = self._deployments.get(*key), step.metadata.namespace
        quote = self._namespaces.quotes(key.namespace, reader=reader)
        verdict = evaluate(deployment, images, name=str(key), quote=quote)
        if verdict.healthy or quote or deployment is None:
            return verdict
        remedy = f"annotate namespace {key.namespace} with {PIPELINES_FROM}: {reader} to see what it runs"
        return Verdict(False, f"{verdict.message} ({remedy})")
