"""Read an Application of Argo CD: what it was compared with, what runs on it, and which of its sources are ours.

`metadata.generation` moves with every write of the status and there is no observedGeneration, so an Application tells
by the revision and the source of its comparison what its status is about. It says `revision` with one source, and
`revisions` with a list of `sources`, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kardinal.api.repository_url import InvalidRepositoryURL, repository_key
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.policy.binding import clean_path
from kardinal_agent.health.fields import entries, items, latest, moment, section, text
from kardinal_agent.health.verdict import Promotion

__all__ = ["APPLICATION", "Application", "same_repository"]

APPLICATION = ResourceType("argoproj.io", "v1alpha1", "Application", "applications")

_SKIP_RECONCILE = "argocd.argoproj.io/skip-reconcile"
_ERRORS = ("ComparisonError", "InvalidSpecError", "UnknownError")
"""Conditions with which Argo CD cannot compare."""
_COMPARED = ("repoURL", "path", "targetRevision", "chart")
"""Fields of a source that say whether it is still the one that was compared; Argo CD normalises others."""


@dataclass(frozen=True, slots=True)
class Application:
    """One Application, as Argo CD left it."""

    found: JsonObject

    @property
    def title(self) -> str:
        return f"Application {key_of(self.found)}"

    @property
    def since(self) -> datetime | None:
        """Return the last time at which Argo CD changed something."""
        status = section(self.found, "status")
        operation = section(status, "operationState")
        return latest(
            [
                moment(status, "reconciledAt"),
                moment(status, "health", "lastTransitionTime"),
                moment(operation, "startedAt"),
                moment(operation, "finishedAt"),
            ]
        )

    @property
    def is_skipped(self) -> bool:
        """Return whether an annotation keeps Argo CD from looking at it."""
        return text(self.found, "metadata", "annotations", _SKIP_RECONCILE) == "true"

    @property
    def is_hydrated(self) -> bool:
        """Return whether it syncs from commits that Argo CD makes itself."""
        return bool(section(self.found, "spec", "sourceHydrator"))

    @property
    def syncs_itself(self) -> bool:
        automated = section(self.found, "spec", "syncPolicy").get("automated")
        return isinstance(automated, Mapping) and automated.get("enabled") is not False

    @property
    def may_be_left(self) -> bool:
        """Return whether Argo CD syncs it by itself only at the first sight of a revision.

        Of several sources without selfHeal it does not sync revisions that it has compared before, such as those of a
        commit that came during another sync.
        """
        automated = section(self.found, "spec", "syncPolicy", "automated")
        return bool(entries(self.found, "spec", "sources")) and automated.get("selfHeal") is not True

    @property
    def sources(self) -> Sequence[Mapping[str, Any]]:
        spec = section(self.found, "spec")
        return entries(spec, "sources") or [section(spec, "source")]

    @property
    def revisions(self) -> Sequence[str]:
        """Return the revision that each source was compared at; shorter where the comparison was of other sources."""
        sync = section(self.found, "status", "sync")
        if entries(self.found, "spec", "sources"):
            return [each if isinstance(each, str) else "" for each in items(sync, "revisions")]
        return [text(sync, "revision")]

    def own_sources(self, promotion: Promotion) -> Sequence[int]:
        """Return which sources read what was promoted: those of the repository, and of the path if any is of it."""
        repository = promotion.repository
        ours = [index for index, each in enumerate(self.sources) if same_repository(text(each, "repoURL"), repository)]
        reading = [index for index in ours if _reads(self.sources[index], promotion.path)]
        return reading or ours

    def was_compared(self, index: int) -> bool:
        """Return whether the comparison was of the source as it is now."""
        compared = section(self.found, "status", "sync", "comparedTo")
        if not compared:
            return True
        sources = entries(compared, "sources") or [section(compared, "source")]
        if index >= len(sources):
            return False
        return all(text(sources[index], name) == text(self.sources[index], name) for name in _COMPARED)

    @property
    def sync_status(self) -> str:
        return text(self.found, "status", "sync", "status")

    @property
    def health(self) -> str:
        return text(self.found, "status", "health", "status")

    @property
    def comparison_error(self) -> Mapping[str, Any]:
        """Return the condition that says why there is no comparison; empty where there is none."""
        conditions = entries(self.found, "status", "conditions")
        return next((each for each in conditions if each.get("type") in _ERRORS), {})

    @property
    def operation(self) -> Mapping[str, Any]:
        return section(self.found, "status", "operationState")

    @property
    def is_operating(self) -> bool:
        """Return whether a sync is requested, runs or waits for its next attempt."""
        return bool(self.found.get("operation")) or text(self.operation, "phase") in ("Running", "Terminating")

    @property
    def sync_failed(self) -> bool:
        """Return whether the last sync failed, of the very revisions that the comparison is of."""
        asked = section(self.operation, "operation", "sync")
        if text(self.operation, "phase") not in ("Failed", "Error") or asked.get("dryRun") is True:
            return False
        synced = section(self.operation, "syncResult") or asked
        if entries(self.found, "spec", "sources"):
            return list(items(synced, "revisions")) == list(self.revisions)
        return [text(synced, "revision")] == list(self.revisions)

    @property
    def prunes_only(self) -> bool:
        """Return whether all that differs are objects that Git no longer has."""
        differing = [each for each in entries(self.found, "status", "resources") if each.get("status") == "OutOfSync"]
        return bool(differing) and all(each.get("requiresPruning") is True for each in differing)

    @property
    def applications(self) -> Sequence[Key]:
        """Return the Applications among the objects that it deploys."""
        own = key_of(self.found).namespace
        return [
            Key(text(each, "namespace") or own, text(each, "name"))
            for each in entries(self.found, "status", "resources")
            if text(each, "group") == APPLICATION.group and text(each, "kind") == APPLICATION.kind
        ]


def same_repository(url: str, repository: str) -> bool:
    """Compare host and path: which ports of a host lead to one repository only the host knows."""
    try:
        return _without_port(url) == _without_port(repository)
    except InvalidRepositoryURL:
        return False


def _without_port(url: str) -> tuple[str, str]:
    place, _, path = repository_key(url).partition("/")
    host, colon, port = place.rpartition(":")
    return (host if colon and port.isdecimal() else place), path


def _reads(source: Mapping[str, Any], path: str) -> bool:
    """Return whether a source reads the path, a directory below it or one above it, or gives files to other sources."""
    theirs, ours = clean_path(text(source, "path")), clean_path(path)
    if "." in (theirs, ours):
        return True
    return theirs == ours or theirs.startswith(f"{ours}/") or ours.startswith(f"{theirs}/")
