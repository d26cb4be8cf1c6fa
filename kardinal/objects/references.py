"""Names of objects: keys and labels.

Cluster-scoped objects have the empty namespace, never None, so that keys compare and sort.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kardinal.objects.resource_type import JsonObject

__all__ = ["Key", "key_of", "labels_of"]


class Key(NamedTuple):
    """A namespace, empty for cluster-scoped objects, and a name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: JsonObject) -> Key:
    """Return the key of an object."""
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])


def labels_of(obj: JsonObject) -> Mapping[str, str]:
    """Return the labels of an object, empty when it has none."""
    return obj["metadata"].get("labels") or {}
