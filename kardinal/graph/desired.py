"""The object that a template or a patch wants: the rendered body, its identity, and the marks of its Graph on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kardinal.graph.compile import CompiledNode
from kardinal.graph.identity import (
    APPLY_ORDER,
    GRAPH_LABEL,
    GRAPH_UID,
    TEMPLATE_HASH,
    GraphIdentity,
    Kinds,
    ObjectKey,
    node_label,
)
from kardinal.objects import GRAPH, JsonObject
from kardinal.objects.applied import content_hash

__all__ = ["Desired", "Unidentified", "UnservedKind", "desired_object", "desired_patch", "identify", "literal_key"]


class UnservedKind(Exception):
    """A kind that is not served; `kind` is its apiVersion and kind."""

    def __init__(self, kind: tuple[str, str]) -> None:
        super().__init__(f"{kind[0]} {kind[1]} is not installed in this cluster; the node goes on when it is")
        self.kind = kind


class Unidentified(Exception):
    """A rendered identity that names no object."""


@dataclass(frozen=True, slots=True)
class Desired:
    """The object of a template, or the fields of a patch, without the annotations of the engine.

    `hash` stands for both `object` and `uid`, and `marks` are the annotations for it and for the layer. `uid`: the
    object exists and is another one's; one of that name with another uid is not written to.
    """

    key: ObjectKey
    object: JsonObject
    hash: str
    marks: tuple[str, str] = (TEMPLATE_HASH, APPLY_ORDER)
    uid: str | None = None

    def marked(self, layer: int) -> JsonObject:
        """Return the object as it is applied: with the annotations of the engine, of which one is `layer`."""
        metadata = self.object["metadata"]
        marks = dict(zip(self.marks, (self.hash, str(layer)), strict=True))
        annotated = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **marks}}
        return {**self.object, "metadata": annotated | ({"uid": self.uid} if self.uid else {})}

    def is_applied_to(self, live: JsonObject) -> bool:
        """Return whether this, and nothing else, was applied to an object last."""
        return (live["metadata"].get("annotations") or {}).get(self.marks[0]) == self.hash


def identify(body: JsonObject, identity: GraphIdentity, kinds: Kinds) -> ObjectKey:
    """Return the identity of `body`; a namespaced object without a namespace gets the namespace of the Graph."""
    kind = body["apiVersion"], body["kind"]
    resource = kinds.get(kind)
    if resource is None:
        raise UnservedKind(kind)
    metadata: dict[str, Any] = body["metadata"]
    name = metadata.get("name")
    namespace = metadata.get("namespace", identity.namespace)
    if not isinstance(name, str) or not name:
        raise Unidentified("metadata.name must be a text")
    if not isinstance(namespace, str) or not namespace:
        raise Unidentified("metadata.namespace must be a text")
    return ObjectKey(resource, namespace if resource.namespaced else "", name)


def literal_key(node: CompiledNode, identity: GraphIdentity, kinds: Kinds) -> ObjectKey | None:
    """Return the identity of the object of `node`, or None when its identity contains an expression."""
    body = node.declaration.body
    if node.declaration.kind not in ("template", "patch") or isinstance(body, str):
        return None
    names = (body["metadata"].get("name"), body["metadata"].get("namespace", ""))
    if any(not isinstance(name, str) or "${" in name for name in names):
        return None
    try:
        return identify(body, identity, kinds)
    except (UnservedKind, Unidentified):
        return None


def desired_object(node: CompiledNode, body: JsonObject, key: ObjectKey, identity: GraphIdentity) -> Desired:
    """Return the object of a rendered template; one outside the Graph's namespace has no owner reference to it."""
    given: dict[str, Any] = body["metadata"]
    label = node_label(node.id, identity)
    marks = {GRAPH_LABEL: identity.hash, label: "template"}
    metadata: dict[str, Any] = {**given, "name": key.name, "labels": {**(given.get("labels") or {}), **marks}}
    if key.namespace != identity.namespace:
        metadata |= {"namespace": key.namespace} if key.namespace else {}
        metadata["annotations"] = {**(given.get("annotations") or {}), GRAPH_UID: identity.uid}
        wanted = {**body, "metadata": metadata}
        return Desired(key, wanted, content_hash(wanted))
    metadata["namespace"] = key.namespace
    owner = {"apiVersion": GRAPH.api_version, "kind": GRAPH.kind, "name": identity.name, "uid": identity.uid}
    metadata["ownerReferences"] = [*(given.get("ownerReferences") or []), {**owner, "controller": True}]
    wanted = {**body, "metadata": metadata}
    return Desired(key, wanted, content_hash(wanted))


def desired_patch(
    node: CompiledNode, body: JsonObject, key: ObjectKey, identity: GraphIdentity, *, uid: str
) -> Desired:
    """Return the fields that a rendered patch sets on the object of `key`, whose uid it is for."""
    given: dict[str, Any] = body["metadata"]
    marks = identity.patch_marks
    metadata = {**given, "labels": {**(given.get("labels") or {}), marks.node: node.id.lower()}}
    if key.namespace:
        metadata["namespace"] = key.namespace
    wanted = {**body, "metadata": metadata}
    return Desired(key, wanted, content_hash({"object": wanted, "uid": uid}), (marks.hash, marks.order), uid)
