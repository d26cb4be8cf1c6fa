"""Read an Application of Argo CD: its comparison, its operations, and the sources that read our repository.

`metadata.generation` changes with every write of the status and there is no observedGeneration, so the revision and the
source of the last comparison are the only sign of the version that a status is about. An Application with one source
has `revision`; one with a list of `sources` has `revisions`, in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.promotion.policy.binding import clean_path
from kardinal.tree.repository_url import InvalidRepositoryURL, repository_key
from kardinal_agent.health.fields import entries, items, latest, moment, section, text
from kardinal_agent.health.verdict import PromotionFacts

__all__ = ["APPLICATION", "Application", "same_repository"]

APPLICATION = ResourceType("argoproj.io", "v1alpha1", "Application", "applications")

_SKIP_RECONCILE = "argocd.argoproj.io/skip-reconcile"
_ERRORS = ("ComparisonError", "InvalidSpecError", "UnknownError")
"""The types of conditions with which Argo CD makes no comparison."""
_COMPARED = ("repoURL", "path", "targetRevision", "chart")
"""The fields by which a source is recognised as the compared one; Argo CD normalises the other fields."""


@dataclass(frozen=True, slots=True)
class Application:
    """One Application, as it was read from the API server."""

    found: JsonObject

    @property
    def title(self) -> str:
        return f"Application {key_of(self.found)}"

    @property
    def since(self) -> datetime | None:
        """Return the time of the last change by Argo CD: the end of an operation or a change of health."""
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
        """Return whether an annotation tells Argo CD to skip the Application."""
        return text(self.found, "metadata", "annotations", _SKIP_RECONCILE) == "true"

    @property
    def is_hydrated(self) -> bool:
        """Return whether it syncs from commits that the source hydrator of Argo CD creates."""
        return bool(section(self.found, "spec", "sourceHydrator"))

    @property
    def syncs_itself(self) -> bool:
        automated = section(self.found, "spec", "syncPolicy").get("automated")
        return isinstance(automated, Mapping) and automated.get("enabled") is not False

    @property
    def may_be_left(self) -> bool:
        """Return whether automated sync may leave out a revision.

        With several sources and without selfHeal, Argo CD syncs a revision only when it compares it for the first time.
        A commit that arrives during another sync is then compared, and never synced automatically.
        """
        automated = section(self.found, "spec", "syncPolicy", "automated")
        return bool(entries(self.found, "spec", "sources")) and automated.get("selfHeal") is not True

    @property
    def sources(self) -> Sequence[Mapping[str, Any]]:
        spec = section(self.found, "spec")
        return entries(spec, "sources") or [section(spec, "source")]

    @property
    def revisions(self) -> Sequence[str]:
        """Return the compared revision of each source; fewer if the last comparison had other sources."""
        sync = section(self.found, "status", "sync")
        if entries(self.found, "spec", "sources"):
            return [each if isinstance(each, str) else "" for each in items(sync, "revisions")]
        return [text(sync, "revision")]

    def own_sources(self, promotion: PromotionFacts) -> Sequence[int]:
        """Return the indexes of the sources that read the repository; only those of the path, if there are any."""
        repository = promotion.repository
        ours = [index for index, each in enumerate(self.sources) if same_repository(text(each, "repoURL"), repository)]
        reading = [index for index in ours if _reads(self.sources[index], promotion.path)]
        return reading or ours

    def was_compared(self, index: int) -> bool:
        """Return whether the last comparison had the current source at `index`."""
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
        """Return the condition that prevents a comparison; empty if there is none."""
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
        """Return whether the last sync failed, and was of the same revisions as the last comparison."""
        asked = section(self.operation, "operation", "sync")
        if text(self.operation, "phase") not in ("Failed", "Error") or asked.get("dryRun") is True:
            return False
        synced = section(self.operation, "syncResult") or asked
        if entries(self.found, "spec", "sources"):
            return list(items(synced, "revisions")) == list(self.revisions)
        return [text(synced, "revision")] == list(self.revisions)

    @property
    def prunes_only(self) -> bool:
        """Return whether the only differences are objects that Git no longer contains."""
        differing = [each for each in entries(self.found, "status", "resources") if each.get("status") == "OutOfSync"]
        return bool(differing) and all(each.get("requiresPruning") is True for each in differing)

    @property
    def applications(self) -> Sequence[Key]:
        """Return the keys of the Applications that it deploys."""
        own = key_of(self.found).namespace
        return [
            Key(text(each, "namespace") or own, text(each, "name"))
            for each in entries(self.found, "status", "resources")
            if text(each, "group") == APPLICATION.group and text(each, "kind") == APPLICATION.kind
        ]


def same_repository(url: str, repository: str) -> bool:
    """Return whether two URLs have the same host and path.

    Ports are not compared, because a host serves the same repository on different ports by https and ssh.
    """
    try:
        return _without_port(url) == _without_port(repository)
    except InvalidRepositoryURL:
        return False


def _without_port(url: str) -> tuple[str, str]:
    place, _, path = repository_key(url).partition("/")
    host, colon, port = place.rpartition(":")
    return (host if colon and port.isdecimal() else place), path


def _reads(source: Mapping[str, Any], path: str) -> bool:
    """Return whether a source reads `path`, a directory below or above it, or has files for other sources (`ref`)."""
    theirs = clean_path(text(source, "path"))
    ours = clean_path(path)
    if "." in (theirs, ours):
        return True
    return theirs == ours or theirs.startswith(f"{ours}/") or ours.startswith(f"{theirs}/")
