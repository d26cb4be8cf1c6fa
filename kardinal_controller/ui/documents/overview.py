"""The rows of the overview, and the notices above them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import Provenance
from kardinal.promotion.api.image import bundle_versions
from kardinal.promotion.api.pipeline import Git
from kardinal.promotion.views.reading import PipelineObjects
from kardinal_controller.ui.documents.cards import environment_cards, people_of
from kardinal_controller.ui.documents.facts import PipelineFacts, facts_of
from kardinal_controller.ui.documents.sentences import hold_before, pipeline_sentence
from kardinal_controller.ui.model import PageNotice, PipelineRow

__all__ = ["branch_of", "notices", "pause_message", "pipeline_row"]

_PEOPLE = 32
"""The most people of one row."""
_DAY = timedelta(hours=25)
"""The longest day: that on which daylight saving time ends."""
_QUARTER = 15


def pipeline_row(objects: PipelineObjects, *, now: datetime) -> PipelineRow:
    """Return the row of a Pipeline on the overview."""
    facts = facts_of(objects, now=now)
    need, why = pipeline_sentence(facts)
    metadata = objects.pipeline.metadata
    shown = objects.bundle
    newest = objects.bundles[0] if objects.bundles else None
    involved = {
        bundle.metadata.name: bundle
        for bundle in (*([shown] if shown is not None else []), *(each for _, each in facts.running.values()))
    }
    return PipelineRow(
        namespace=metadata.namespace,
        name=metadata.name,
        branch=branch_of(objects.pipeline.spec.git),
        need=need,
        why=why,
        paused=pause_message(facts),
        bundle=shown.metadata.name if shown is not None else None,
        newest=bundle_versions(newest.spec.artifacts) if newest is not None else "",
        people=people_of(involved.values())[:_PEOPLE],
        commit=_commit(shown),
        environments=environment_cards(facts),
        verified=_verified(objects.bundles, now=now),
        changed_at=_changed_at(facts),
    )


def notices(rows: Iterable[PipelineRow]) -> dict[str, PageNotice]:
    """Return the notices above the rows that a viewer sees: one for each shard without an agent."""
    waiting: dict[str, list[datetime]] = {}
    for row in rows:
        for card in row.environments.values():
            if card.no_agent_since is not None:
                waiting.setdefault(card.shard or "", []).append(card.no_agent_since)
    return {f"shard/{shard}": _unserved(shard, since) for shard, since in sorted(waiting.items())}


def pause_message(facts: PipelineFacts) -> str | None:
    """Return the message of the freeze of a Pipeline; None if it is not paused."""
    frozen = hold_before(facts, "")
    return frozen.message if frozen is not None else None


def branch_of(git: Git) -> str:
    """Return the branch of a Pipeline as it is shown."""
    return "branches of environments" if git.layout == "branch" else git.branch


def _unserved(shard: str, since: list[datetime]) -> PageNotice:
    count = len(since)
    return PageNotice(
        tone="warn",
        text=f"No agent serves shard {shard}." if shard else "No agent serves environments without a shard.",
        detail=f"{count} environment{'' if count == 1 else 's'} wait{'s' if count == 1 else ''}.",
        command=f"kardinal-agent --shard={shard}" if shard else None,
        since=min(since),
    )


def _verified(bundles: Iterable[Bundle], *, now: datetime) -> dict[str, int]:
    """Return how many environments were Verified in the last day, by the beginning of the quarter of an hour."""
    records = (record for bundle in bundles for record in bundle.status.environments.values())
    moments = [record.verified_at.astimezone(UTC) for record in records if record.verified_at is not None]
    recent = sorted(moment for moment in moments if now - _DAY < moment <= now)
    return dict(Counter(f"{each:%Y-%m-%dT%H}:{each.minute // _QUARTER * _QUARTER:02d}Z" for each in recent))


def _commit(bundle: Bundle | None) -> str:
    provenance = (bundle.spec.provenance if bundle is not None else None) or Provenance()
    return provenance.commit_sha or ""


def _changed_at(facts: PipelineFacts) -> datetime | None:
    moments = [state.since for state in facts.states.values()]
    if facts.bundle is not None:
        moments.append(facts.bundle.metadata.creation_timestamp)
    return max((moment for moment in moments if moment is not None), default=None)
