"""Names of objects: keys and labels.

Cluster-scoped objects have the empty namespace, never None, so that keys compare and sort.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kardinal.objects.resource_type import JsonObject, ResourceType

__all__ = ["Key", "Owner", "controller_of", "key_of", "labels_of"]


class Key(NamedTuple):
    """A namespace, empty for cluster-scoped objects, and a name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Owner(NamedTuple):
    """The owner that an owner reference names; it is in the namespace of the owned object."""

    name: str
    uid: str


def key_of(obj: JsonObject) -> Key:
    """Return the key of an object."""
    metadata = obj["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])


def labels_of(obj: JsonObject) -> Mapping[str, str]:
    """Return the labels of an object, empty when it has none."""
    return obj["metadata"].get("labels") or {}


def controller_of(obj: JsonObject, resource: ResourceType) -> Owner | None:
    """Return name and uid of the controlling owner of `obj`; None if it has none of the kind `resource`."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller") is True:
            group = str(reference.get("apiVersion", "")).rpartition("/")[0]
            same_kind = reference.get("kind") == resource.kind and group == resource.group
            return Owner(str(reference.get("name", "")), str(reference.get("uid", ""))) if same_kind else None
    return None
