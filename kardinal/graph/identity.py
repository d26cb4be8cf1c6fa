"""The marks by which the engine recognises its own objects.

An object belongs to a Graph when the Graph's uid is in its owner references, no other object controls it, and a node of
the Graph could have made it (`claims`). Labels and annotations are not proof of that; they serve other purposes:

- a label with a hash of the Graph, and a label named after the node, to find objects and to read them;
- the hash of the applied template, so that neither a restart nor an unrelated change of the Graph applies it again;
- the layer of the node, so that objects are deleted in order even when the Graph no longer contains their nodes.

The generation of the Graph is no mark, because adding a node would then rewrite the objects of all other nodes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from kardinal.objects import GRAPH, JsonObject, ResourceType

__all__ = [
    "APPLY_ORDER",
    "FINALIZER",
    "GRAPH_LABEL",
    "TEMPLATE_HASH",
    "GraphIdentity",
    "Kinds",
    "ObjectKey",
    "claims",
    "content_hash",
    "field_manager",
    "graph_hash",
    "is_owned_by",
    "named_kinds",
    "node_label",
    "node_of",
    "object_key",
]

FINALIZER = "experimental.kro.run/graph-controller"
GRAPH_LABEL = "internal.kro.run/graph"
TEMPLATE_HASH = "internal.kro.run/template-hash"
APPLY_ORDER = "internal.kro.run/apply-order"

_MANAGER_LIMIT = 128
_PREFIX_LIMIT = 253


Kinds = Mapping[tuple[str, str], ResourceType]
"""The kinds that the engine serves, by apiVersion and kind, for example `("apps/v1", "Deployment")`."""


@dataclass(frozen=True, slots=True)
class GraphIdentity:
    """The name, namespace and uid of the Graph that is walked."""

    namespace: str
    name: str
    uid: str
    owners: frozenset[tuple[str, str, str]] = frozenset()


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


def content_hash(value: object) -> str:
    """Return a hash of a JSON value as twelve hex digits; the order of keys does not matter."""
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
    """Return the two possible ends of a node label: with the Graph's name in full, and with its hash if too long."""
    namespace = identity.namespace
    name = identity.name
    short = graph_hash(namespace, name)
    return f".{name}.{namespace}.internal.kro.run/type", f".{short}.{namespace}.internal.kro.run/type"


def node_label(node: str, identity: GraphIdentity) -> str:
    """Return the key of the label that marks the objects of `node`."""
    keys = [node.lower() + suffix for suffix in _node_suffixes(identity)]
    return next((key for key in keys if len(key.partition("/")[0]) <= _PREFIX_LIMIT), keys[-1])


def node_of(obj: JsonObject, identity: GraphIdentity) -> str | None:
    """Return the id, in lower case, of the node that an object belongs to by its label; None without such a label."""
    suffixes = _node_suffixes(identity)
    for key in obj["metadata"].get("labels") or ():
        for suffix in suffixes:
            if key.endswith(suffix):
                return str(key.removesuffix(suffix))
    return None


def is_owned_by(obj: Mapping[str, Any], uid: str) -> bool:
    """Return whether the Graph with `uid` owns the object, and no other object controls it."""
    references = obj["metadata"].get("ownerReferences") or ()
    mine = [reference for reference in references if _names_graph(reference, uid)]
    return bool(mine) and not any(reference.get("controller") for reference in references if reference not in mine)


def _names_graph(reference: Mapping[str, Any], uid: str) -> bool:
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    return reference.get("uid") == uid and reference.get("kind") == GRAPH.kind and group == GRAPH.group


def claims(specs: Iterable[Mapping[str, Any]], key: ObjectKey) -> bool:
    """Return whether a template in one of `specs` can have created the object `key`.

    `specs` are versions of the spec of one Graph. A template whose name is an expression can have created an object of
    any name, and one that is an expression as a whole an object of any kind.
    """
    for spec in specs:
        nodes = spec.get("nodes")
        for node in nodes if isinstance(nodes, list) else ():
            body = node.get("template") if isinstance(node, dict) else None
            if isinstance(body, str):
                return True
            if not isinstance(body, dict) or body.get("kind") != key.resource.kind:
                continue
            metadata = body.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            if isinstance(name, str) and (name == key.name or "${" in name):
                return True
    return False


def named_kinds(specs: Iterable[Mapping[str, Any]], *, keyword: str | None = None) -> set[tuple[str, str]]:
    """Return the kinds, as apiVersion and kind, that nodes of `specs` name: in all bodies, or in those of one keyword.

    A body that is an expression names none.
    """
    found = set()
    for spec in specs:
        nodes = spec.get("nodes")
        for node in nodes if isinstance(nodes, list) else ():
            bodies = node.items() if isinstance(node, dict) else ()
            for word, body in bodies:
                if isinstance(body, dict) and word != "def" and keyword in (None, word):
                    kind = body.get("apiVersion"), body.get("kind")
                    if isinstance(kind[0], str) and isinstance(kind[1], str):
                        found.add((kind[0], kind[1]))
    return found
