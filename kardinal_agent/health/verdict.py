"""The contract of a health adapter, and its verdict.

One rule stands above all adapters: healthy on the old version must never verify. An adapter therefore looks for the
promoted images first and at the workload's condition second, and it never assumes what it does not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kardinal.api import PromotionStep
from kardinal.api.image import ImageReference

__all__ = ["HealthAdapter", "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on an environment; `message` says what proves it, or precisely what is missing."""

    healthy: bool
    message: str


class HealthAdapter(Protocol):
    """One way to ask; it answers from what it watches, at once and without a request."""

    def refusal(self, step: PromotionStep) -> str | None:
        """Return why the proof that a PromotionStep asks for is not to be had, with its field; None when it is."""
        ...

    def check(self, step: PromotionStep, images: Sequence[ImageReference]) -> Verdict: ...
