"""List past promotions, which Bundles record beyond the deletion of their PromotionSteps and Graphs (pure).

They are read from `status.environments` of the Bundles, where each entry has the last attempt and a list of the earlier
ones. Bundles that were deleted because of `historyLimit` are missing; their commits, with trailers, are still in Git.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.bundle import AttemptRecord, EnvironmentStatus
from kardinal.promotion.api.evidence import Evidence
from kardinal.promotion.api.image import bundle_title
from kardinal.promotion.views.bundles import newest_first

__all__ = ["PromotionAttempt", "known_environments", "promotions", "version_before"]

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PromotionAttempt:
    """One attempt of one Bundle in one environment; `record` is its entry in the status of the Bundle."""

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
        """Return the time by which promotions are sorted: of verification, else of landing, else of the start."""
        return self.record.verified_at or self.record.promoted_at or self.record.started_at

    @property
    def took(self) -> timedelta | None:
        """Return the duration from the start to the verification; None unless both times are recorded."""
        began = self.record.started_at
        ended = self.record.verified_at
        return ended - began if began is not None and ended is not None else None

    @property
    def by(self) -> Sequence[str]:
        """Return the users who approved the pull request at its host, else the user who merged it."""
        merged_by = self.evidence.merged_by
        return self.evidence.approved_by or ((merged_by,) if merged_by else ())

    @property
    def requested_by(self) -> str | None:
        """Return the `by` of the request that began the attempt, which is unverified; None without a request."""
        asked = {request.id: request.by for request in self.bundle.spec.intent.requests or ()}
        return asked.get(self.record.request or "")


def promotions(bundles: Iterable[Bundle], *, environment: str | None = None) -> list[PromotionAttempt]:
    """Return the promotions that have begun, newest first by `at`; at equal times those of newer Bundles first.

    `environment` limits them to one environment; defaults to all.
    """
    found = [
        promotion
        for bundle in newest_first(bundles)
        for promotion in _of(bundle)
        if environment in (None, promotion.environment)
    ]
    return sorted(found, key=lambda promotion: promotion.at or _NEVER, reverse=True)


def known_environments(pipeline: Pipeline, bundles: Iterable[Bundle]) -> list[str]:
    """Return the environments of a Pipeline, then removed ones that are still in the status of a Bundle."""
    listed = [environment.name for environment in pipeline.spec.environments]
    return list(dict.fromkeys([*listed, *(name for bundle in bundles for name in bundle.status.environments)]))


def version_before(bundles: Iterable[Bundle], bundle: Bundle, environment: str) -> PromotionAttempt | None:
    """Return the last verified promotion of another Bundle before `bundle` was Verified in the environment.

    If `bundle` was not Verified there, that is the promotion that the environment runs now. None without such a
    promotion.
    """
    verified = [
        each for each in promotions(bundles, environment=environment) if each.record.verified_at is not None and each.at
    ]
    own = [each.at for each in verified if each.bundle.metadata.name == bundle.metadata.name and each.at]
    until = max(own, default=None)
    others = (each for each in verified if each.bundle.metadata.name != bundle.metadata.name)
    return next((each for each in others if until is None or (each.at is not None and each.at < until)), None)


def _of(bundle: Bundle) -> Iterator[PromotionAttempt]:
    """Yield the promotions of a Bundle that have begun, in each environment the last attempt first."""
    for name, entry in bundle.status.environments.items():
        records: Sequence[EnvironmentStatus | AttemptRecord] = (entry, *reversed(entry.attempts or ()))
        for record in records:
            promotion = PromotionAttempt(bundle, name, record)
            if promotion.at is not None:
                yield promotion
