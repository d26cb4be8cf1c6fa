"""Make the OpenAPI v3 documents, one per group and version, with what kubectl reads from them.

kubectl looks at four things. `explain` finds a kind by the path of its collection and walks its schema. `apply` asks
whether PATCH takes `fieldValidation`, and validates on its own when it does not. `apply` of a built-in kind computes a
strategic patch from the schema, if PATCH takes one - so a custom kind must not list it. `--dry-run=server` asks for
`dryRun`. The schemas are those that the server itself works by, with the type's identity added, and `metadata`
and int-or-string in the form that clients know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kardinal_local.plane.builtin import components, schema_name
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.handlers.operations import operations
from kardinal_local.plane.kinds import Kind

__all__ = ["document"]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1."
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_IDENTITY: Final[JsonObject] = {
    "apiVersion": {"type": "string", "description": "Group and version of the schema that the object follows."},
    "kind": {"type": "string", "description": "What the object is, in CamelCase."},
}


def document(group: str, version: str, kinds: Sequence[Kind]) -> JsonObject:
    """The document of one group and version."""
    schemas: JsonObject = {
        _INT_OR_STRING: {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
        f"{_META}ListMeta": {"type": "object", "description": "What a list carries beside its items."},
        f"{_META}Patch": {"type": "object", "description": "A patch in the form that the content type names."},
        f"{_META}Status": {"type": "object", "description": "The answer to a request that yields no object."},
    }
    known = [_name(kind) for kind in kinds if kind.typed is not None]
    for name, schema in components([f"{_META}ObjectMeta", f"{_META}DeleteOptions", *known]).items():
        schemas[name] = _referring(schema)
    paths: JsonObject = {}
    for kind in kinds:
        if kind.typed is None:
            schemas[_name(kind)] = _schema(kind)
        else:
            identity = _identity(kind.group, kind.version, kind.kind)
            schemas[_name(kind)]["x-kubernetes-group-version-kind"] = [identity]
        schemas[f"{_name(kind)}List"] = _list_schema(kind)
        paths.update(operations(kind, schema=_name(kind), meta=_META))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _name(kind: Kind) -> str:
    if not kind.custom:
        return schema_name(kind.group, kind.version, kind.kind)
    return f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}"


def _schema(kind: Kind) -> JsonObject:
    source: JsonObject = kind.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {key: _linked(value) for key, value in source.get("properties", {}).items()}
    metadata = {"description": "What every stored object carries.", "allOf": [_reference("ObjectMeta")]}
    identity = _identity(kind.group, kind.version, kind.kind)
    return {**source, "properties": {**properties, **_IDENTITY, "metadata": metadata}} | {
        "x-kubernetes-group-version-kind": [identity]
    }


def _list_schema(kind: Kind) -> JsonObject:
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{_name(kind)}"}}
    return {
        "type": "object",
        "description": f"A list of {kind.kind} objects.",
        "required": ["items"],
        "properties": {**_IDENTITY, "items": items, "metadata": {"allOf": [_reference("ListMeta")]}},
        "x-kubernetes-group-version-kind": [_identity(kind.group, kind.version, kind.list_kind)],
    }


def _referring(schema: JsonObject) -> JsonObject:
    """A built-in schema as clients know it: what stands beside a reference keeps it company in `allOf`."""
    result = dict(schema)
    if "properties" in schema:
        result["properties"] = {name: _beside(field, alone=False) for name, field in schema["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            result[keyword] = _beside(schema[keyword], alone=True)
    return result


def _beside(schema: JsonObject, *, alone: bool) -> JsonObject:
    if "$ref" not in schema:
        return _referring(schema)
    if alone and len(schema) == 1:
        return schema
    own = {key: value for key, value in schema.items() if key != "$ref"}
    return {**own, "allOf": [{"$ref": schema["$ref"]}]}


def _linked(schema: Any) -> Any:
    """The schema with int-or-string as a reference, which is how clients know it."""
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {**schema, "allOf": [*schema.get("allOf", ()), {"$ref": f"#/components/schemas/{_INT_OR_STRING}"}]}
    result = dict(schema)
    if "properties" in schema:
        result["properties"] = {key: _linked(value) for key, value in schema["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            result[keyword] = _linked(schema[keyword])
    return result


def _reference(name: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{_META}{name}"}


def _identity(group: str, version: str, kind: str) -> JsonObject:
    return {"group": group, "version": version, "kind": kind}
