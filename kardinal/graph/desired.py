"""The object a template node wants: what was rendered, where it goes, and the marks of its Graph on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kardinal.graph.compile import CompiledNode
from kardinal.graph.identity import (
    APPLY_ORDER,
    GRAPH_LABEL,
    TEMPLATE_HASH,
    GraphIdentity,
    Kinds,
    ObjectKey,
    content_hash,
    graph_hash,
    node_label,
)
from kardinal.objects import GRAPH, JsonObject

__all__ = ["Desired", "Unidentified", "UnservedKind", "desired_object", "identify", "literal_key"]


class UnservedKind(Exception):
    """A kind that the engine does not watch."""


class Unidentified(Exception):
    """A rendered identity that names no object."""


@dataclass(frozen=True, slots=True)
class Desired:
    """`object` without the annotations of the engine; `hash` stands for it."""

    key: ObjectKey
    object: JsonObject
    hash: str

    def marked(self, layer: int) -> JsonObject:
        """Return the object as it is applied."""
        metadata = self.object["metadata"]
        marks = {TEMPLATE_HASH: self.hash, APPLY_ORDER: str(layer)}
        return {**self.object, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **marks}}}


def identify(body: JsonObject, identity: GraphIdentity, kinds: Kinds) -> ObjectKey:
    """Which object `body` is about; a namespaced one without a namespace stands in that of the Graph."""
    resource = kinds.get((body["apiVersion"], body["kind"]))
    if resource is None:
        served = ", ".join(sorted({kind for _, kind in kinds}))
        raise UnservedKind(f"{body['apiVersion']} {body['kind']} is none of the kinds served here: {served}")
    metadata: dict[str, Any] = body["metadata"]
    name, namespace = metadata.get("name"), metadata.get("namespace", identity.namespace)
    if not isinstance(name, str) or not name:
        raise Unidentified("metadata.name must be a text")
    if not isinstance(namespace, str) or not namespace:
        raise Unidentified("metadata.namespace must be a text")
    return ObjectKey(resource, namespace if resource.namespaced else "", name)


def literal_key(node: CompiledNode, identity: GraphIdentity, kinds: Kinds) -> ObjectKey | None:
    """Return the object of a template whose identity needs no data."""
    if node.declaration.kind != "template":
        return None
    body = node.declaration.body
    names = (body["metadata"].get("name"), body["metadata"].get("namespace", ""))
    if any(not isinstance(name, str) or "${" in name for name in names):
        return None
    try:
        return identify(body, identity, kinds)
    except (UnservedKind, Unidentified):
        return None


def desired_object(node: CompiledNode, body: JsonObject, key: ObjectKey, identity: GraphIdentity) -> Desired:
    """Return the object of a rendered template; raises Unidentified for one outside the Graph's namespace."""
    if key.namespace != identity.namespace:
        raise Unidentified(f"{key} is not in {identity.namespace}: a Graph makes objects in its own namespace only")
    given: dict[str, Any] = body["metadata"]
    label = node_label(node.id, identity)
    marks = {GRAPH_LABEL: graph_hash(identity.namespace, identity.name), label: "template"}
    metadata: dict[str, Any] = {**given, "name": key.name, "labels": {**(given.get("labels") or {}), **marks}}
    metadata["namespace"] = key.namespace
    owner = {"apiVersion": GRAPH.api_version, "kind": GRAPH.kind, "name": identity.name, "uid": identity.uid}
    metadata["ownerReferences"] = [*(given.get("ownerReferences") or []), {**owner, "controller": True}]
    wanted = {**body, "metadata": metadata}
    return Desired(key, wanted, content_hash(wanted))
