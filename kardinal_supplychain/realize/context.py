"""The values that the tags of a template read, such as `$(workload.metadata.name)$` and `$(images.x.image)$`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kardinal.objects import JsonObject
from kardinal_supplychain.blueprints.owner import owner_document

__all__ = ["ROOTS", "InputValues", "SourceValue", "template_context"]

ROOTS = (
    "workload",
    "deliverable",
    "params",
    "sources",
    "images",
    "configs",
    "deployment",
    "labels",
    "source",
    "image",
    "config",
)
"""The first fields that a tag can read."""


@dataclass(frozen=True, slots=True)
class SourceValue:
    """The value of a source: where it is, and in which revision."""

    url: Any
    revision: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class InputValues:
    """The values of the inputs of a resource, by the names that its template reads them under."""

    sources: Mapping[str, SourceValue] = field(default_factory=dict)
    images: Mapping[str, Any] = field(default_factory=dict)
    configs: Mapping[str, Any] = field(default_factory=dict)
    deployment: SourceValue | None = None

    def to_json(self) -> JsonObject:
        """Return the inputs as a template reads them."""
        read: JsonObject = {
            "sources": {
                name: {"name": name, "url": source.url, "revision": source.revision}
                for name, source in self.sources.items()
            },
            "images": {name: {"name": name, "image": image} for name, image in self.images.items()},
            "configs": {name: {"name": name, "config": config} for name, config in self.configs.items()},
        }
        if self.deployment is not None:
            read["deployment"] = {"url": self.deployment.url, "revision": self.deployment.revision}
        return read


def template_context(
    owner: JsonObject, *, params: Mapping[str, Any], inputs: InputValues, labels: Mapping[str, str]
) -> JsonObject:
    """Return the context of a template.

    `source`, `image` and `config` are there if a resource declares one input of that type; an image and a config are
    read by `image` and `config` themselves. `labels` are those of the stamped object.
    """
    document = owner_document(owner)
    read = inputs.to_json()
    context = {"workload": document, "deliverable": document, "params": dict(params), "labels": dict(labels), **read}
    if len(read["sources"]) == 1:
        (context["source"],) = read["sources"].values()
    if len(inputs.images) == 1:
        (context["image"],) = inputs.images.values()
    if len(inputs.configs) == 1:
        (context["config"],) = inputs.configs.values()
    return context
