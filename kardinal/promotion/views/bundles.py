"""Rows of Bundles, and the order in which all commands list Bundles (pure).

This module does not import the pydantic models: `kardinal get bundles` is the command that is called most, and
importing the models would take a third of its time. So the rows are computed from stored objects, which are dicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from kardinal.objects import JsonObject
from kardinal.objects.conditions import find_condition
from kardinal.promotion.api.image import stored_versions
from kardinal.promotion.api.names import LABEL_PIPELINE, WAITING_FOR_GRAPH
from kardinal.promotion.views.missing import unknown_bundle
from kardinal.promotion.views.states import AVAILABLE

if TYPE_CHECKING:
    from kardinal.promotion.api import Bundle

__all__ = ["BundleLine", "bundle_lines", "chosen_bundle", "last_verified", "newest_first", "pipeline_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleLine:
    """One Bundle with its provenance, as a row of `kardinal get bundles`; an unknown value is an empty string."""

    name: str
    versions: str
    phase: str
    environments: Mapping[str, str]
    """The state of the Bundle by environment, for example `{"dev": "Verified"}`."""
    commit: str
    author: str
    created: datetime
    message: str
    """The message of the condition Ready."""


def bundle_lines(stored: Iterable[JsonObject]) -> list[BundleLine]:
    """Return a row for each stored Bundle, newest first."""
    return [_line(bundle) for bundle in sorted(stored, key=_stored_order, reverse=True)]


def newest_first(bundles: Iterable[Bundle]) -> list[Bundle]:
    """Return Bundles sorted as `bundle_lines` sorts them."""
    return sorted(bundles, key=_order, reverse=True)


def chosen_bundle(bundles: Sequence[Bundle], pipeline: str, name: str | None) -> Bundle | None:
    """Return the Bundle called `name`. Raises `Missing` if the Pipeline has no Bundle of that name.

    Without a name: the newest Bundle that has not ended, else the newest Bundle, else None. `bundles` are all Bundles
    of the Pipeline, newest first.
    """
    if name is None:
        return next((bundle for bundle in bundles if not bundle.status.has_ended), bundles[0] if bundles else None)
    for bundle in bundles:
        if bundle.metadata.name == name:
            return bundle
    raise unknown_bundle(pipeline, name)


def pipeline_of(bundle: Bundle) -> str:
    """Return the name of the Pipeline of a Bundle: `status.pipeline`, else the label `kardinal.io/pipeline`."""
    return bundle.status.pipeline or bundle.metadata.labels.get(LABEL_PIPELINE, "")


def last_verified(bundles: Iterable[Bundle], environment: str) -> tuple[datetime, Bundle] | None:
    """Return the Bundle that was Verified last in an environment, with the time; None if no Bundle was."""
    verified = [
        (entry.verified_at, bundle)
        for bundle in bundles
        if (entry := bundle.status.environments.get(environment)) and entry.state == "Verified" and entry.verified_at
    ]
    return max(verified, key=lambda pair: pair[0], default=None)


def _line(bundle: JsonObject) -> BundleLine:
    spec = bundle["spec"]
    status = bundle.get("status") or {}
    provenance = spec.get("provenance") or {}
    ready = find_condition(status, "Ready")
    return BundleLine(
        name=bundle["metadata"]["name"],
        versions=stored_versions(spec["artifacts"]),
        phase=_shown_phase(status, ready),
        environments={name: entry["state"] for name, entry in (status.get("environments") or {}).items()},
        commit=provenance.get("commitSHA") or "",
        author=provenance.get("author") or "",
        created=_created(bundle),
        message=(ready.get("message") or "") if ready else "",
    )


def _shown_phase(status: JsonObject, ready: JsonObject | None) -> str:
    """Return what `states.phase_of` returns, from the stored status."""
    phase = status.get("phase") or AVAILABLE
    waits = phase == AVAILABLE and ready is not None and ready.get("reason") == WAITING_FOR_GRAPH
    return WAITING_FOR_GRAPH if waits else str(phase)


def _created(bundle: JsonObject) -> datetime:
    return datetime.fromisoformat(bundle["metadata"]["creationTimestamp"])


def _order(bundle: Bundle) -> tuple[float, float, str]:
    """Return the sort key of a Bundle: its creation time, which has whole seconds, then `status.sequence`, its name.

    `sequence` is the order in which the controller admitted the Bundles. A Bundle without it counts as the newest.
    """
    created = bundle.metadata.creation_timestamp
    return created.timestamp() if created else 0.0, bundle.status.sequence or math.inf, bundle.metadata.name


def _stored_order(bundle: JsonObject) -> tuple[float, float, str]:
    sequence = (bundle.get("status") or {}).get("sequence")
    return _created(bundle).timestamp(), sequence or math.inf, bundle["metadata"]["name"]
