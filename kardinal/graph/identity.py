"""The marks by which the engine recognises its own objects.

Nothing about ownership is kept in status or memory: every object the engine applies carries a label with a hash of its
Graph, which selects, a label named after its node, which reads, and two annotations: the hash of the template it was
applied from, so that neither a restart nor an unrelated change of the Graph applies it again, and the layer it stands
in, so that it can be deleted in order even when the Graph no longer says so. The generation of the Graph is not among
them: adding a node would rewrite every other one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from kardinal.objects import JsonObject, ResourceType

__all__ = [
    "ADOPTED",
    "APPLY_ORDER",
    "FINALIZER",
    "GRAPH_LABEL",
    "TEMPLATE_HASH",
    "GraphIdentity",
    "Kinds",
    "ObjectKey",
    "content_hash",
    "field_manager",
    "graph_hash",
    "node_label",
    "node_of",
    "object_key",
]

FINALIZER = "experimental.kro.run/graph-controller"
GRAPH_LABEL = "internal.kro.run/graph"
TEMPLATE_HASH = "internal.kro.run/template-hash"
APPLY_ORDER = "internal.kro.run/apply-order"
ADOPTED = "internal.kro.run/adopted"

_MANAGER_LIMIT = 128
_PREFIX_LIMIT = 253


Kinds = Mapping[tuple[str, str], ResourceType]
"""The kinds that the engine serves, by apiVersion and kind."""


@dataclass(frozen=True, slots=True)
class GraphIdentity:
    """The Graph that is walked, and the objects it belongs to by owner reference."""

    namespace: str
    name: str
    uid: str
    owners: frozenset[tuple[str, str, str]] = frozenset()


class ObjectKey(NamedTuple):
    """One object of one kind, whatever version it is read in."""

    resource: ResourceType
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {where}{self.name}"


def object_key(resource: ResourceType, obj: Mapping[str, Any]) -> ObjectKey:
    return ObjectKey(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])


def content_hash(value: object) -> str:
    """Twelve hex digits that stand for a JSON value, whatever the order of its keys."""
    return _digits(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def _digits(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def graph_hash(namespace: str, name: str) -> str:
    return _digits(f"{namespace}/{name}".encode())


def field_manager(namespace: str, name: str) -> str:
    manager = f"{name}.{namespace}.internal.kro.run"
    if len(manager) <= _MANAGER_LIMIT:
        return manager
    return f"{graph_hash(namespace, name)}.internal.kro.run"


def _node_suffixes(identity: GraphIdentity) -> tuple[str, str]:
    """Return what follows the node in the key of its label: in full, and for names that are too long for that."""
    namespace, name = identity.namespace, identity.name
    short = graph_hash(namespace, name)
    return f".{name}.{namespace}.internal.kro.run/type", f".{short}.{namespace}.internal.kro.run/type"


def node_label(node: str, identity: GraphIdentity) -> str:
    """Return the key of the label that says which node of a Graph an object belongs to."""
    keys = [node.lower() + suffix for suffix in _node_suffixes(identity)]
    return next((key for key in keys if len(key.partition("/")[0]) <= _PREFIX_LIMIT), keys[-1])


def node_of(obj: JsonObject, identity: GraphIdentity) -> str | None:
    """Return the node an object belongs to, in lower case."""
    suffixes = _node_suffixes(identity)
    for key in obj["metadata"].get("labels") or ():
        for suffix in suffixes:
            if key.endswith(suffix):
                return str(key.removesuffix(suffix))
    return None
