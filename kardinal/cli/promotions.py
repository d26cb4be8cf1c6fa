"""The promotions of the past, as the Bundles keep them after their PromotionSteps and Graphs are gone (pure).

The entries of `status.environments`, with the attempts before them, say what ran where. Bundles that `historyLimit` has
collected are not in it; their commits are, with their trailers, in Git.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kardinal.api import Bundle
from kardinal.api.bundle import AttemptRecord, EnvironmentStatus
from kardinal.api.evidence import Evidence
from kardinal.api.image import bundle_title
from kardinal.cli.session import newest_first

__all__ = ["Promotion", "promotions", "version_before"]

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Promotion:
    """One attempt of one Bundle in one environment; `record` is what is kept of it."""

    bundle: Bundle
    environment: str
    record: EnvironmentStatus | AttemptRecord

    @property
    def attempt(self) -> int:
        return self.record.attempt or 1

    @property
    def version(self) -> str:
        return bundle_title(self.bundle.spec.artifacts)

    @property
    def evidence(self) -> Evidence:
        return self.record.evidence or Evidence()

    @property
    def at(self) -> datetime | None:
        """Return the moment for which it stands: of its proof, else of its landing, else of its beginning."""
        return self.record.verified_at or self.record.promoted_at or self.record.started_at

    @property
    def took(self) -> timedelta | None:
        """Return the time from its first step to its proof; None where it is not known."""
        began, ended = self.record.started_at, self.record.verified_at
        return ended - began if began is not None and ended is not None else None

    @property
    def by(self) -> Sequence[str]:
        """Return the people who let it through, as the host of the pull request says."""
        merged_by = self.evidence.merged_by
        return self.evidence.approved_by or ((merged_by,) if merged_by else ())

    @property
    def requested_by(self) -> str | None:
        """Return who asked for it, as that person claims; None where the creation of the Bundle did."""
        asked = {request.id: request.by for request in self.bundle.spec.intent.requests or ()}
        return asked.get(self.record.request or "")

    def to_json(self) -> dict[str, Any]:
        shown = ("state", "message", "startedAt", "promotedAt", "verifiedAt", "commit", "prURL", "evidence")
        record = self.record.to_json()
        found = {
            "environment": self.environment,
            "bundle": self.bundle.metadata.name,
            "version": self.version,
            "attempt": self.attempt,
            "by": list(self.by),
            "requestedBy": self.requested_by,
            "seconds": self.took.total_seconds() if self.took is not None else None,
            **{name: record.get(name) for name in shown},
        }
        return {name: value for name, value in found.items() if value is not None}


def promotions(bundles: Iterable[Bundle], *, environment: str | None = None) -> list[Promotion]:
    """Return the promotions that have begun, newest first; those of one moment in the order of their Bundles."""
    found = [
        promotion
        for bundle in newest_first(bundles)
        for promotion in _of(bundle)
        if environment in (None, promotion.environment)
    ]
    return sorted(found, key=lambda promotion: promotion.at or _NEVER, reverse=True)


def version_before(bundles: Iterable[Bundle], bundle: Bundle, environment: str) -> Promotion | None:
    """Return what ran in an environment before a Bundle came there; where it has not come there, what runs there."""
    verified = [
        each for each in promotions(bundles, environment=environment) if each.record.verified_at is not None and each.at
    ]
    own = [each.at for each in verified if each.bundle.metadata.name == bundle.metadata.name and each.at]
    until = max(own, default=None)
    others = (each for each in verified if each.bundle.metadata.name != bundle.metadata.name)
    return next((each for each in others if until is None or (each.at is not None and each.at < until)), None)


def _of(bundle: Bundle) -> Iterator[Promotion]:
    """Yield the promotions of a Bundle, the last attempt in an environment first."""
    for name, entry in bundle.status.environments.items():
        records: Sequence[EnvironmentStatus | AttemptRecord] = (entry, *reversed(entry.attempts or ()))
        for record in records:
            promotion = Promotion(bundle, name, record)
            if promotion.at is not None:
                yield promotion
