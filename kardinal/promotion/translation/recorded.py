"""Recorded Graphs: whether a Graph, a PromotionStep or a gate instance was made by translation.

Everyone who may write an object can set its name, labels and spec, so these prove nothing. The proof comes from fields
that only the controller or the API server can set: the status of a Bundle records the uid of its Graph and a hash of
its spec, and the owner reference of an object names its Graph by uid. `trace` follows these references from an object
to its node. `expected_spec` returns the spec that the node wants, so that a manual change is noticed before the engine
has reverted it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from kardinal.objects import GRAPH, JsonObject, ResourceType, controller_of
from kardinal.promotion.kinds import BUNDLE

__all__ = ["Traced", "Untraceable", "expected_spec", "is_recorded", "spec_hash", "trace"]

Lookup = Callable[[str, str], JsonObject | None]
"""A function from a namespace and a name to the object of one kind; None without one."""


class Untraceable(Exception):
    """An object that was not made by a node of a recorded Graph; the text is the reason."""


def spec_hash(graph: JsonObject) -> str:
    """Return the SHA-256 of the spec of a Graph in hex; the order of keys does not change it."""
    return hashlib.sha256(orjson.dumps(graph.get("spec") or {}, option=orjson.OPT_SORT_KEYS)).hexdigest()


def is_recorded(graph: JsonObject, bundle: JsonObject) -> bool:
    """Return whether `graph` is the Graph in the status of `bundle`, and unchanged since the controller wrote it.

    While the controller extends a Graph, both the spec before and the spec after count as unchanged.
    """
    record = (bundle.get("status") or {}).get("graph") or {}
    owner = controller_of(graph, BUNDLE)
    return (
        owner is not None
        and owner.uid == bundle["metadata"]["uid"]
        and graph["metadata"]["namespace"] == bundle["metadata"]["namespace"]
        and graph["metadata"]["uid"] == record.get("uid")
        and spec_hash(graph) in (record.get("hash"), record.get("nextHash"))
    )


class Traced(NamedTuple):
    """The node that made an object, with its Graph and the Bundle of that."""

    node: JsonObject
    graph: JsonObject
    bundle: JsonObject


def trace(obj: JsonObject, resource: ResourceType, *, graphs: Lookup, bundles: Lookup) -> Traced:
    """Return the node that made `obj`, an object of the kind of `resource`; raises Untraceable.

    `graphs` and `bundles` find the Graph in the owner reference of `obj`, and the Bundle that controls this Graph.
    """
    namespace = obj["metadata"]["namespace"]
    owner = controller_of(obj, GRAPH)
    if owner is None:
        raise Untraceable("no Graph controls it")
    graph = graphs(namespace, owner.name)
    if graph is None or graph["metadata"]["uid"] != owner.uid:
        raise Untraceable(f"Graph {owner.name}, which controls it, does not exist")
    parent = controller_of(graph, BUNDLE)
    bundle = bundles(namespace, parent.name) if parent else None
    if bundle is None:
        raise Untraceable(f"the Bundle of Graph {owner.name} does not exist")
    if not is_recorded(graph, bundle):
        raise Untraceable(f"Graph {owner.name} is not what Bundle {bundle['metadata']['name']} was translated to")
    for node in graph["spec"]["nodes"]:
        body = node.get("template") or {}
        if body.get("kind") == resource.kind and body["metadata"]["name"] == obj["metadata"]["name"]:
            return Traced(dict(node), graph, bundle)
    raise Untraceable(f"Graph {owner.name} has no node of that name")


def expected_spec(node: JsonObject, live: Mapping[str, Any]) -> JsonObject:
    """Return the spec that a node wants. Where the node has an expression, the value of `live` is taken."""
    spec: JsonObject = _expected(node["template"].get("spec") or {}, live)
    return spec


def _expected(template: Any, live: Any) -> Any:
    if isinstance(template, str):
        is_expression = "${" in template.replace("$${", "")
        return live if is_expression else template.replace("$${", "${")
    if isinstance(template, dict):
        fields = live if isinstance(live, dict) else {}
        return {name: _expected(value, fields.get(name)) for name, value in template.items()}
    if isinstance(template, list):
        items = live if isinstance(live, list) and len(live) == len(template) else [None] * len(template)
        return [_expected(value, item) for value, item in zip(template, items, strict=True)]
    return template
