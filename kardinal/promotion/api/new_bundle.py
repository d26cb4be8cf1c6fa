"""The manifest of a new Bundle, for the webhook, the CLI and automatic rollbacks.

The CLI names a Bundle `<pipeline>-<version>-<second>`. If that name is taken, the following seconds are tried, so that
two Bundles of one version in one second get different names, which still sort by time. The webhook derives the name
from the request, so that one delivery creates one Bundle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api.bundle import Artifacts, BundleType, Intent, Provenance
from kardinal.promotion.api.image import bundle_title
from kardinal.promotion.api.names import ANNOTATION_PIN, ANNOTATION_SOURCE, LABEL_PIPELINE, bundle_name, label_value
from kardinal.promotion.kinds import BUNDLE

__all__ = ["NAME_ATTEMPTS", "NewBundle"]

NAME_ATTEMPTS = 16
"""The most names that are tried, and so the most Bundles of one version per second."""


@dataclass(frozen=True, slots=True)
class NewBundle:
    """The choices of a Bundle's creator.

    `source` is for example `webhook` or `cli`. `labels` cannot name another Pipeline.
    """

    pipeline: str
    namespace: str
    artifacts: Artifacts
    source: str
    type: BundleType = "image"
    provenance: Provenance | None = None
    intent: Intent = field(default_factory=Intent)
    labels: Mapping[str, str] = field(default_factory=dict)
    pin: bool = False
    """Whether newer Bundles do not supersede it. Defaults to False."""

    def manifest(self, name: str, *, annotations: Mapping[str, str] | None = None) -> JsonObject:
        """Return the object to create with the name `name`."""
        spec: dict[str, Any] = {
            "type": self.type,
            "artifacts": self.artifacts.to_json(),
            "intent": self.intent.to_json(),
        }
        pinned = {ANNOTATION_PIN: "true"} if self.pin else {}
        if self.provenance is not None:
            spec["provenance"] = self.provenance.to_json()
        return {
            "apiVersion": BUNDLE.api_version,
            "kind": BUNDLE.kind,
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {**self.labels, LABEL_PIPELINE: label_value(self.pipeline)},
                "annotations": {ANNOTATION_SOURCE: self.source, **pinned, **(annotations or {})},
            },
            "spec": spec,
        }

    def manifests(self, *, now: datetime) -> Iterator[JsonObject]:
        """Yield the object with each name to try, in order."""
        version = bundle_title(self.artifacts)
        second = int(now.timestamp())
        for attempt in range(NAME_ATTEMPTS):
            yield self.manifest(bundle_name(self.pipeline, version, str(second + attempt)))
