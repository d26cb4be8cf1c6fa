"""The adapter `acme-landed`, in the agent."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.promotion.api import PromotionStep
from kardinal_agent.health import Adapter, PromotionFacts, Verdict, Watched, WatchedObjects, healthy, progressing

__all__ = ["Landed"]


class Landed(Adapter):
    """Answers at once, from the promotion alone."""

    name = "acme-landed"

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        return ()

    def judge(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Verdict:
        commit = promotion.commit
        return healthy(f"{commit[:12]} has landed") if commit else progressing("waits for a commit to land")
