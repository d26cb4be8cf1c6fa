"""Generated kinds: structural schemas with every list and map type, defaults, bounds and open content.

A definition costs the real server far more than a request, so one carries twenty schemas, each below a field of its
own; a sequence writes to one of them. Generated schemas are always accepted: what a schema may be is tested elsewhere.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.local.contract.fuzz.steps import JsonObject

__all__ = ["SLOTS", "definition", "definitions", "has_status", "slot_path"]

SLOTS = 20
_NAMES = "abcd"
_DEPTH = 3
_STRING: JsonObject = {"type": "string"}


def definitions(seed: int, *, number: int, group: str) -> list[JsonObject]:
    """CRDs with `SLOTS` schemas each."""
    return [definition(Random(f"{seed}/definition/{index}"), group=group, index=index) for index in range(number)]


def definition(rng: Random, *, group: str, index: int) -> JsonObject:
    slots = {f"s{slot}": _object(rng, 0) for slot in range(SLOTS)}
    place = {"type": "object", "properties": slots}
    at_root = index % 4 == 3
    properties: JsonObject = dict(slots) if at_root else {"spec": place}
    properties["status"] = place if not at_root else {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    if index % 3 != 2:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things{index}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": f"things{index}", "kind": f"Thing{index}"},
            "versions": [version],
        },
    }


def slot_path(crd: JsonObject, slot: int) -> tuple[str, ...]:
    """Where in an object the fields of a slot are."""
    return (f"s{slot}",) if f"s{slot}" in _root(crd)["properties"] else ("spec", f"s{slot}")


def has_status(crd: JsonObject) -> bool:
    return "subresources" in crd["spec"]["versions"][0]


def _root(crd: JsonObject) -> JsonObject:
    root: JsonObject = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return root


def _object(rng: Random, depth: int) -> JsonObject:
    properties = {name: _field(rng, depth + 1) for name in _NAMES[: rng.randint(2, 4)]}
    schema: JsonObject = {"type": "object", "properties": properties}
    if rng.random() < 0.2:
        schema["required"] = [rng.choice(list(properties))]
    _shape_map(rng, schema)
    return schema


def _field(rng: Random, depth: int) -> JsonObject:
    makers: list[tuple[Any, int]] = [(_scalar, 5), (_set, 2), (_atomic_list, 2), (_scalar_map, 2), (_open, 1)]
    if depth < _DEPTH:
        makers += [(_object, 4), (_keyed_list, 5), (_object_map, 2), (_embedded, 1)]
    (make,) = rng.choices([maker for maker, _ in makers], [weight for _, weight in makers])
    schema: JsonObject = make(rng, depth)
    if rng.random() < 0.12:
        schema["nullable"] = True
    return schema


def _scalar(rng: Random, depth: int) -> JsonObject:
    schema: JsonObject = rng.choice(
        [
            _STRING,
            {"type": "string", "enum": ["a", "b"]},
            {"type": "string", "maxLength": 3},
            {"type": "integer"},
            {"type": "integer", "maximum": 2},
            {"type": "number"},
            {"type": "boolean"},
            {"x-kubernetes-int-or-string": True},
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        ]
    )
    if rng.random() < 0.3:
        default = {"string": "a", "integer": 1, "number": 1.5, "boolean": True}.get(schema.get("type", ""), 1)
        schema = {**schema, "default": default}
    return dict(schema)


def _set(rng: Random, depth: int) -> JsonObject:
    return {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": rng.choice(["string", "integer"])}}


def _atomic_list(rng: Random, depth: int) -> JsonObject:
    schema: JsonObject = {"type": "array", "items": {"type": rng.choice(["string", "integer"])}}
    if rng.random() < 0.5:
        schema["x-kubernetes-list-type"] = "atomic"
    if depth < _DEPTH and rng.random() < 0.3:
        schema["items"] = _object(rng, _DEPTH)
    return schema


def _keyed_list(rng: Random, depth: int) -> JsonObject:
    items = _object(rng, depth)
    items.pop("x-kubernetes-map-type", None)
    items["properties"]["name"] = dict(_STRING)
    keys, required = ["name"], {"name", *items.get("required", ())}
    if rng.random() < 0.4:
        items["properties"]["port"] = {"type": "integer"}
        if rng.random() < 0.5:
            items["properties"]["port"]["default"] = 1
        else:
            required.add("port")
        keys.append("port")
    items["required"] = sorted(required)
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items}


def _scalar_map(rng: Random, depth: int) -> JsonObject:
    schema: JsonObject = {"type": "object", "additionalProperties": dict(_STRING)}
    _shape_map(rng, schema)
    return schema


def _object_map(rng: Random, depth: int) -> JsonObject:
    return {"type": "object", "additionalProperties": _object(rng, depth)}


def _open(rng: Random, depth: int) -> JsonObject:
    schema: JsonObject = {"x-kubernetes-preserve-unknown-fields": True}
    if rng.random() < 0.7:
        schema["type"] = "object"
        if rng.random() < 0.5:
            schema["properties"] = {"a": dict(_STRING)}
    return schema


def _embedded(rng: Random, depth: int) -> JsonObject:
    return {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }


def _shape_map(rng: Random, schema: JsonObject) -> None:
    chance = rng.random()
    if chance < 0.15:
        schema["x-kubernetes-map-type"] = "atomic"
    elif chance < 0.25:
        schema["x-kubernetes-map-type"] = "granular"
