"""The adapter `acme-landed`, in the agent."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.api import PromotionStep
from kardinal.api.image import ImageReference
from kardinal_agent.health import Verdict

__all__ = ["Landed"]


class Landed:
    """Answers at once, from the PromotionStep alone."""

    def refusal(self, step: PromotionStep) -> str | None:
        return None

    def check(self, step: PromotionStep, images: Sequence[ImageReference]) -> Verdict:
        commit = step.status.commit
        return Verdict(commit is not None, f"{commit[:12]} has landed" if commit else "waits for a commit to land")
