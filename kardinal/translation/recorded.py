"""Recorded Graphs: whether a Graph, a PromotionStep or a gate instance is what translation made.

Names, labels and specs can be written by everybody who may write the object. What decides is what only the controller
writes and what the API server makes: the status of a Bundle records the uid of its Graph and a hash of its spec, and an
object names the Graph that controls it by uid. `trace` follows these from an object to the node it was made from, and
`expected_spec` says what the node wants, so that a difference is seen before the engine has put it back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from kardinal.objects import BUNDLE, GRAPH, JsonObject, ResourceType, controller_of

__all__ = ["Untraceable", "expected_spec", "is_recorded", "spec_hash", "trace"]


class Untraceable(Exception):
    """An object that no node of a recorded Graph made; the text says why."""


def spec_hash(graph: JsonObject) -> str:
    """Return the SHA-256 of the spec of a Graph in hex, whatever the order of its keys."""
    return hashlib.sha256(orjson.dumps(graph.get("spec") or {}, option=orjson.OPT_SORT_KEYS)).hexdigest()


def is_recorded(graph: JsonObject, bundle: JsonObject) -> bool:
    """Return whether `graph` is the one that the status of `bundle` records, as the controller wrote it.

    While the controller extends a Graph its spec may be the one before or the one after.
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


def trace(
    obj: JsonObject, resource: ResourceType, *, graph: JsonObject | None, bundle: JsonObject | None
) -> JsonObject:
    """Return the node that made `obj`, an object of kind `resource`; raises Untraceable.

    `graph` is the Graph of the name that the owner reference of `obj` says, `bundle` the one that controls this Graph.
    """
    owner = controller_of(obj, GRAPH)
    if owner is None:
        raise Untraceable("no Graph controls it")
    if graph is None or graph["metadata"]["uid"] != owner.uid:
        raise Untraceable(f"Graph {owner.name}, which controls it, does not exist")
    if bundle is None:
        raise Untraceable(f"the Bundle of Graph {owner.name} does not exist")
    if not is_recorded(graph, bundle):
        raise Untraceable(f"Graph {owner.name} is not what Bundle {bundle['metadata']['name']} was translated to")
    for node in graph["spec"]["nodes"]:
        body = node.get("template") or {}
        if body.get("kind") == resource.kind and body["metadata"]["name"] == obj["metadata"]["name"]:
            return dict(node)
    raise Untraceable(f"Graph {owner.name} has no node of that name")


def expected_spec(node: JsonObject, live: Mapping[str, Any]) -> JsonObject:
    """Return the spec that a node wants; where it is an expression, what `live` has stands for the value."""
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
