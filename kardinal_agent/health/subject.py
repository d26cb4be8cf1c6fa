"""Say what an object of a GitOps tool lets one conclude: in fixed words, and with what the object says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kardinal_agent.health.verdict import Promotion, Verdict
from kardinal_agent.health.workloads import quoted

__all__ = ["Subject", "short_commit"]

_COMMIT_DIGITS = 7


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that a verdict is about, as messages call it, and since when nothing has moved in it."""

    title: str
    since: datetime | None = None

    def waits(self, words: str, *, says: str = "", negative: bool = False) -> Verdict:
        """Return that it is not there yet: `words` say what is missing, `says` is the object's own text."""
        message = f"waits for {self.title}: {words}"
        return Verdict(
            state="progressing", message=message, details=_with(message, says), since=self.since, negative=negative
        )

    def failed(self, reason: str, words: str, *, says: str = "", negative: bool = True) -> Verdict:
        """Return that it will not get there by itself; `negative` where what runs is no longer healthy."""
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
        """Return the proof."""
        return Verdict(state="healthy", message=f"{self.title} {words}")


def short_commit(promotion: Promotion) -> str:
    """Return what messages call the commit that landed."""
    return f"commit {promotion.commit[:_COMMIT_DIGITS]}" if promotion.commit else "the commit of this promotion"


def _with(message: str, says: str) -> str:
    return f"{message}: {quoted(says)}" if says else ""
