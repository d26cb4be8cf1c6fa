"""Make verdicts on one object of a GitOps tool: in fixed words, and with the texts of the object as details."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kardinal_agent.health.templates import quoted
from kardinal_agent.health.verdict import PromotionFacts, Verdict

__all__ = ["Subject", "short_commit"]

_COMMIT_DIGITS = 7


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a verdict is about: its name in messages, and the time of its last change."""

    title: str
    since: datetime | None = None

    def waits(self, words: str, *, says: str = "", negative: bool = False) -> Verdict:
        """Return the verdict "progressing": `words` name the missing part, `says` is a text of the object."""
        message = f"waits for {self.title}: {words}"
        return Verdict(
            state="progressing", message=message, details=_with(message, says), since=self.since, negative=negative
        )

    def failed(self, reason: str, words: str, *, says: str = "", negative: bool = True) -> Verdict:
        """Return the verdict "failed"; `negative` if it also means that a Verified environment is unhealthy."""
        message = f"{self.title}: {words}"
        return Verdict(
            state="failed",
            message=message,
            details=_with(message, says),
            reason=reason,
            since=self.since,
            negative=negative,
        )

    def proves(self, words: str) -> Verdict:
        """Return the verdict "healthy"."""
        return Verdict(state="healthy", message=f"{self.title} {words}")


def short_commit(promotion: PromotionFacts) -> str:
    """Return the landed commit as messages write it: its first characters, or a phrase if it is unknown."""
    return f"commit {promotion.commit[:_COMMIT_DIGITS]}" if promotion.commit else "the commit of this promotion"


def _with(message: str, says: str) -> str:
    return f"{message}: {quoted(says)}" if says else ""
