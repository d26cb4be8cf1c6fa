"""The words in which the built-in kinds are described.

Each function gives a fresh piece of OpenAPI v3 in the dialect of structural schemas, with the Kubernetes extensions
that tell server-side apply and strategic merge how a list behaves. They are separate statements, because they differ
for some lists: container ports merge by `containerPort` in a strategic patch, and are keyed by port and protocol for
server-side apply. Design: local-plane.md 2.3 (built-ins).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardinal.localplane.documents import JsonObject

__all__ = [
    "anything",
    "atomic",
    "boolean",
    "defaulted",
    "encoded",
    "extended",
    "int_or_string",
    "integer",
    "keyed",
    "listed",
    "map_of",
    "quantity",
    "retaining",
    "set_of",
    "string",
    "struct",
    "time",
]


def struct(description: str = "", /, *, needs: tuple[str, ...] = (), **fields: JsonObject) -> JsonObject:
    """An object with named fields; a trailing underscore frees a field of a Python keyword."""
    properties = {name.rstrip("_"): schema for name, schema in fields.items()}
    result: JsonObject = {"type": "object", "properties": properties}
    if needs:
        result["required"] = list(needs)
    return _described(result, description)


def extended(schema: JsonObject, fields: Mapping[str, JsonObject]) -> JsonObject:
    """The object with more fields."""
    return {**schema, "properties": {**schema["properties"], **fields}}


def string(
    description: str = "", *, enum: tuple[str, ...] = (), most: int | None = None, default: str | None = None
) -> JsonObject:
    result: JsonObject = {"type": "string"}
    if enum:
        result["enum"] = list(enum)
    if most is not None:
        result["maxLength"] = most
    return _described(result, description, default)


def integer(description: str = "", *, default: int | None = None, bits: int = 32) -> JsonObject:
    return _described({"type": "integer", "format": f"int{bits}"}, description, default)


def boolean(description: str = "", *, default: bool | None = None) -> JsonObject:
    return _described({"type": "boolean"}, description, default)


def time(description: str = "") -> JsonObject:
    return _described({"type": "string", "format": "date-time"}, description)


def encoded(description: str = "") -> JsonObject:
    """Bytes, base64-encoded."""
    return _described({"type": "string", "format": "byte"}, description)


def int_or_string(description: str = "", *, default: int | str | None = None) -> JsonObject:
    return _described({"x-kubernetes-int-or-string": True}, description, default)


def quantity(description: str = "") -> JsonObject:
    """An amount such as `100m` or `1Gi`; a bare number is one too."""
    return int_or_string(description)


def anything(description: str = "") -> JsonObject:
    """An object whose content is kept as it is."""
    return _described({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, description)


def map_of(values: JsonObject, description: str = "") -> JsonObject:
    return _described({"type": "object", "additionalProperties": values}, description)


def atomic(schema: JsonObject) -> JsonObject:
    """The object as one value: whoever applies it owns it whole."""
    return {**schema, "x-kubernetes-map-type": "atomic"}


def listed(items: JsonObject, description: str = "") -> JsonObject:
    """A list that is replaced as a whole."""
    return _described({"type": "array", "items": items, "x-kubernetes-list-type": "atomic"}, description)


def defaulted(schema: JsonObject, value: Any) -> JsonObject:
    """The schema with what the server fills in when nothing is given."""
    return {**schema, "default": value}


def retaining(schema: JsonObject) -> JsonObject:
    """A union: a strategic patch that sets one member names those it keeps."""
    strategies = [schema["x-kubernetes-patch-strategy"]] if "x-kubernetes-patch-strategy" in schema else []
    return {**schema, "x-kubernetes-patch-strategy": ",".join([*strategies, "retainKeys"])}


def set_of(items: JsonObject, description: str = "", *, merge: bool = False) -> JsonObject:
    """Scalars without order or twins."""
    result: JsonObject = {"type": "array", "items": items, "x-kubernetes-list-type": "set"}
    if merge:
        result["x-kubernetes-patch-strategy"] = "merge"
    return _described(result, description)


def keyed(items: JsonObject, description: str = "", /, *, by: tuple[str, ...], merge: str | None = None) -> JsonObject:
    """A list that is a map by some fields of its elements; `merge` is the key of a strategic patch."""
    result: JsonObject = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(by),
    }
    if merge is not None:
        result["x-kubernetes-patch-strategy"] = "merge"
        result["x-kubernetes-patch-merge-key"] = merge
    return _described(result, description)


def _described(schema: JsonObject, description: str, default: Any = None) -> JsonObject:
    if description:
        schema["description"] = description
    if default is not None:
        schema["default"] = default
    return schema
