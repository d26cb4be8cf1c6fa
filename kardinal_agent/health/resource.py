"""Adapter `resource`: the workload itself."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.api import PromotionStep
from kardinal.objects import DEPLOYMENT, Key
from kardinal_agent.health.verdict import Adapter, Objects, Promotion, Verdict, Watched, progressing
from kardinal_agent.health.workloads import judge_workload, missing_workload

__all__ = ["ResourceAdapter"]


class ResourceAdapter(Adapter):
    """Judges the Deployment that the PromotionStep names."""

    name = "resource"

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        key = _named(step)
        return (Watched(kind=DEPLOYMENT, namespace=key.namespace, name=key.name),) if key is not None else ()

    def judge(self, step: PromotionStep, promotion: Promotion, objects: Objects) -> Verdict:
        key = _named(step)
        if key is None:
            return progressing("health.resource names no Deployment")
        found = objects.get(DEPLOYMENT, *key)
        return judge_workload(found, promotion.images) if found else missing_workload(DEPLOYMENT, *key)


def _named(step: PromotionStep) -> Key | None:
    resource = step.spec.health.resource
    if resource is None or resource.name is None or resource.namespace is None:
        return None
    return Key(resource.namespace, resource.name)
