"""The marks by which the engine recognises its own objects.

An object belongs to a Graph when the Graph's uid is in its owner references, no other object controls it, and a node of
the Graph could have made it (`named.Claims`). Labels and annotations are not proof of that; they serve other purposes:

- a label with a hash of the Graph, and a label named after the node, to find objects and to read them;
- the hash of the applied template, so that neither a restart nor an unrelated change of the Graph applies it again;
- the layer of the node, so that objects are deleted in order even when the Graph no longer contains their nodes.

An object of another program that a node patches has marks of that Graph alone, since several Graphs may patch it.

The generation of the Graph is no mark, because adding a node would then rewrite the objects of all other nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from kardinal.objects import GRAPH, JsonObject, ResourceType

__all__ = [
    "APPLY_ORDER",
    "CONFIDENTIAL",
    "FINALIZER",
    "GRAPH_LABEL",
    "GRAPH_UID",
    "TEMPLATE_HASH",
    "GraphIdentity",
    "Kinds",
    "ObjectKey",
    "PatchMarks",
    "field_manager",
    "graph_hash",
    "is_owned_by",
    "node_label",
    "node_of",
    "object_key",
    "patch_labels",
]

FINALIZER = "experimental.kro.run/graph-controller"
GRAPH_LABEL = "internal.kro.run/graph"
GRAPH_UID = "internal.kro.run/graph-uid"
"""The annotation of an object outside the namespace of its Graph, which no owner reference can name."""
TEMPLATE_HASH = "internal.kro.run/template-hash"
APPLY_ORDER = "internal.kro.run/apply-order"
CONFIDENTIAL = "internal.kro.run/confidential"
"""The annotation of an object that is made of data of a Secret, so that its name is not told when it is deleted."""

_PATCHED_BY = ".internal.kro.run/patch"

_MANAGER_LIMIT = 128
_PREFIX_LIMIT = 253


Kinds = Mapping[tuple[str, str], ResourceType]
"""The kinds that the engine serves, by apiVersion and kind, for example `("apps/v1", "Deployment")`."""


class PatchMarks(NamedTuple):
    """The keys of the marks on an object that a node of one Graph patches.

    `node` is a label with the id of the node in lower case, `hash` and `order` are annotations as on an own object.
    """

    node: str
    hash: str
    order: str


@dataclass(frozen=True)
class GraphIdentity:
    """The name, namespace and uid of the Graph that is walked."""

    namespace: str
    name: str
    uid: str
    owners: frozenset[tuple[str, str, str]] = frozenset()

    @cached_property
    def hash(self) -> str:
        return graph_hash(self.namespace, self.name)

    @cached_property
    def node_suffixes(self) -> tuple[str, str]:
        """The two possible ends of a node label: with the Graph's name in full, and with its hash if too long."""
        return (
            f".{self.name}.{self.namespace}.internal.kro.run/type",
            f".{self.hash}.{self.namespace}.internal.kro.run/type",
        )

    @cached_property
    def patch_marks(self) -> PatchMarks:
        """The keys of the marks of the Graph, such as `0f3a5b7c9d1e.internal.kro.run/patch`."""
        prefix = f"{self.hash}{_PATCHED_BY}"
        return PatchMarks(prefix, f"{prefix}-hash", f"{prefix}-order")


class ObjectKey(NamedTuple):
    """The identity of an object, independent of the API version in which it is read."""

    resource: ResourceType
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {where}{self.name}"


def object_key(resource: ResourceType, obj: Mapping[str, Any]) -> ObjectKey:
    return ObjectKey(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def graph_hash(namespace: str, name: str) -> str:
    return hashlib.sha256(f"{namespace}/{name}".encode()).hexdigest()[:12]


def field_manager(namespace: str, name: str) -> str:
    manager = f"{name}.{namespace}.internal.kro.run"
    if len(manager) <= _MANAGER_LIMIT:
        return manager
    return f"{graph_hash(namespace, name)}.internal.kro.run"


def node_label(node: str, identity: GraphIdentity) -> str:
    """Return the key of the label that marks the objects of `node`."""
    keys = [node.lower() + suffix for suffix in identity.node_suffixes]
    return next((key for key in keys if len(key.partition("/")[0]) <= _PREFIX_LIMIT), keys[-1])


def patch_labels(obj: Mapping[str, Any]) -> list[str]:
    """Return the keys of the labels that say which Graphs patch an object."""
    return [key for key in obj["metadata"].get("labels") or () if key.endswith(_PATCHED_BY)]


def node_of(obj: JsonObject, identity: GraphIdentity) -> str | None:
    """Return the id, in lower case, of the node that makes or patches an object by its label; None without one."""
    labels = obj["metadata"].get("labels") or {}
    for key in labels:
        if key.endswith(identity.node_suffixes):
            suffix = next(each for each in identity.node_suffixes if key.endswith(each))
            return str(key.removesuffix(suffix))
    return labels.get(identity.patch_marks.node)


def is_owned_by(obj: Mapping[str, Any], uid: str) -> bool:
    """Return whether the Graph with `uid` owns the object, and no other object controls it."""
    references = obj["metadata"].get("ownerReferences") or ()
    mine = [reference for reference in references if _names_graph(reference, uid)]
    return bool(mine) and not any(reference.get("controller") for reference in references if reference not in mine)


def _names_graph(reference: Mapping[str, Any], uid: str) -> bool:
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    return reference.get("uid") == uid and reference.get("kind") == GRAPH.kind and group == GRAPH.group
