"""The name of an object inside its kind: what queues carry and stores are sorted by.

Cluster-scoped objects have the empty namespace, never None, so that keys compare and sort.
"""

from __future__ import annotations

from typing import NamedTuple

from kardinal.kube import JsonObject

__all__ = ["Key", "key_of"]


class Key(NamedTuple):
    """A namespace, empty for cluster-scoped objects, and a name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(obj: JsonObject) -> Key:
    """The key of an object."""
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])
