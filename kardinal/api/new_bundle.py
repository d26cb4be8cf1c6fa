"""The manifest of a new Bundle, for everything that creates one: the webhook and the CLI.

The CLI names a Bundle `<pipeline>-<version>-<second>`. Where that name is taken, the seconds after it are tried in
turn, so that two Bundles of one version and one second both get a name that sorts by time. The webhook has names of its
own, made of what it was sent, so that one delivery makes one Bundle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kardinal.api.bundle import BUNDLE, Artifacts, BundleType, Intent, Provenance
from kardinal.api.image import bundle_title
from kardinal.api.names import ANNOTATION_PIN, ANNOTATION_SOURCE, LABEL_PIPELINE, bundle_name, label_value
from kardinal.objects import JsonObject

__all__ = ["NAME_ATTEMPTS", "NewBundle"]

NAME_ATTEMPTS = 16
"""Bundles of one Pipeline and version that can be named within one second."""


@dataclass(frozen=True, slots=True)
class NewBundle:
    """The choices of a Bundle's creator; `source` is `webhook` or `cli`. `labels` cannot name another Pipeline."""

    pipeline: str
    namespace: str
    artifacts: Artifacts
    source: str
    type: BundleType = "image"
    provenance: Provenance | None = None
    intent: Intent = field(default_factory=Intent)
    labels: Mapping[str, str] = field(default_factory=dict)
    pin: bool = False
    """Whether newer Bundles do not take its place."""

    def manifest(self, name: str, *, annotations: Mapping[str, str] | None = None) -> JsonObject:
        """Return the object to create under `name`."""
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
        """Yield the object under each name that may be tried, the first choice first."""
        version, second = bundle_title(self.artifacts), int(now.timestamp())
        for attempt in range(NAME_ATTEMPTS):
            yield self.manifest(bundle_name(self.pipeline, version, str(second + attempt)))
