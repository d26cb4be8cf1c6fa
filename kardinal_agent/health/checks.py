"""Ask the adapter of a promotion, and decide what its author is told.

Adapters judge; here is what they have in common: into which namespaces they look at all, and from which of them what
objects say is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kardinal.api import PromotionStep
from kardinal.objects import DEPLOYMENT
from kardinal.runtime import Informer
from kardinal_agent.health.namespaces import PIPELINES_FROM, HealthNamespaces
from kardinal_agent.health.verdict import Adapter, Objects, Promotion, Verdict, Watched, progressing

__all__ = ["HealthChecks"]


class HealthChecks:
    """The proofs of one agent."""

    def __init__(self, adapters: Mapping[str, Adapter], namespaces: HealthNamespaces, deployments: Informer) -> None:
        self._adapters = adapters
        self._namespaces = namespaces
        self._deployments = deployments

    def refusal(self, step: PromotionStep) -> str | None:
        """Return why the proof that a PromotionStep asks for is not to be had, with its field; None when it is."""
        kind = step.spec.health.type or ""
        adapter = self._adapters.get(kind)
        if adapter is None:
            return f"health.type: {kind!r} is not available in this version"
        for watched in adapter.watches(step):
            if problem := self._namespaces.refusal(watched.namespace):
                return f"health.{kind}.namespace: {problem}"
        return None

    def watched(self, step: PromotionStep) -> Sequence[Watched]:
        """Return what the adapter of a PromotionStep looks at."""
        adapter = self._adapters.get(step.spec.health.type or "")
        return adapter.watches(step) if adapter is not None else ()

    def check(self, step: PromotionStep, promotion: Promotion) -> Verdict:
        """Return the verdict of the moment; its message is the one that the author of the Pipeline may read."""
        adapter = self._adapters.get(step.spec.health.type or "")
        if adapter is None:
            return progressing(f"no health adapter is called {step.spec.health.type}")
        watched = adapter.watches(step)
        found = [self._deployments.get(each.namespace, each.name) for each in watched if each.name is not None]
        objects = Objects({DEPLOYMENT: [obj for obj in found if obj is not None]})
        return self._told(step, adapter.judge(step, promotion, objects), watched)

    def _told(self, step: PromotionStep, verdict: Verdict, watched: Sequence[Watched]) -> Verdict:
        reader = step.metadata.namespace
        hidden = [each.namespace for each in watched if not self._namespaces.quotes(each.namespace, reader=reader)]
        if not verdict.details:
            return verdict
        if not hidden:
            return replace(verdict, message=verdict.details)
        if verdict.state == "healthy":
            return verdict
        remedy = f"annotate namespace {hidden[0]} with {PIPELINES_FROM}: {reader} to see what it runs"
        return replace(verdict, message=f"{verdict.message} ({remedy})")
