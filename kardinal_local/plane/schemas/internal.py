"""Write parts of a CRD as the Go structs of the real server print them, for the few errors that quote one.

There every field is written out, in the program's order and with its names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.schemas.printing import as_json

__all__ = ["INTERNAL_NAMES", "internal_rule", "internal_schema", "internal_versions"]

_TEXTS: Final = frozenset({"id", "$schema", "description", "type", "format", "title", "pattern"})
_FLAGS: Final = frozenset(
    {
        *("nullable", "exclusiveMaximum", "exclusiveMinimum", "uniqueItems"),
        *("x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
    }
)
INTERNAL_NAMES: Final = {
    **{"id": "ID", "$schema": "Schema", "$ref": "Ref", "description": "Description", "type": "Type"},
    **{"nullable": "Nullable", "format": "Format", "title": "Title", "default": "Default", "maximum": "Maximum"},
    **{"exclusiveMaximum": "ExclusiveMaximum", "minimum": "Minimum", "exclusiveMinimum": "ExclusiveMinimum"},
    **{"maxLength": "MaxLength", "minLength": "MinLength", "pattern": "Pattern", "maxItems": "MaxItems"},
    **{"minItems": "MinItems", "uniqueItems": "UniqueItems", "multipleOf": "MultipleOf", "enum": "Enum"},
    **{"maxProperties": "MaxProperties", "minProperties": "MinProperties", "required": "Required", "items": "Items"},
    **{"allOf": "AllOf", "oneOf": "OneOf", "anyOf": "AnyOf", "not": "Not", "properties": "Properties"},
    **{"additionalProperties": "AdditionalProperties", "patternProperties": "PatternProperties"},
    **{"dependencies": "Dependencies", "additionalItems": "AdditionalItems", "definitions": "Definitions"},
    **{"externalDocs": "ExternalDocs", "example": "Example"},
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-embedded-resource": "XEmbeddedResource",
    "x-kubernetes-int-or-string": "XIntOrString",
    "x-kubernetes-list-map-keys": "XListMapKeys",
    "x-kubernetes-list-type": "XListType",
    "x-kubernetes-map-type": "XMapType",
    "x-kubernetes-validations": "XValidations",
}
"""The keywords of a schema and what the program calls them, in its order."""


def internal_schema(schema: JsonObject) -> str:
    """A schema as the program prints it."""
    return _record({name: _keyword(keyword, schema.get(keyword)) for keyword, name in INTERNAL_NAMES.items()})


def _record(parts: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in parts.items()) + "}"


def _keyword(keyword: str, value: Any) -> str:
    if keyword in _FLAGS:
        return as_json(bool(value))
    if keyword in _TEXTS:
        return as_json(value or "")
    if value is None:
        return "null"
    write = _NESTED.get(keyword)
    return as_json(value) if write is None else write(value)


def _items(value: Any) -> str:
    if isinstance(value, dict):
        return _record({"Schema": internal_schema(value), "JSONSchemas": "null"})
    return _record({"Schema": "null", "JSONSchemas": _schemas(value)})


def _schemas(value: Any) -> str:
    return "[" + ",".join(map(internal_schema, value)) + "]"


def _properties(value: Any) -> str:
    return "{" + ",".join(f"{as_json(name)}:{internal_schema(value[name])}" for name in sorted(value)) + "}"


def _schema_or_flag(value: Any) -> str:
    if isinstance(value, dict):
        return _record({"Allows": "true", "Schema": internal_schema(value)})
    return _record({"Allows": as_json(bool(value)), "Schema": "null"})


def _rules(value: Any) -> str:
    return "[" + ",".join(map(internal_rule, value)) + "]"


def internal_rule(rule: JsonObject) -> str:
    """A rule as the program prints it."""
    texts = {name[0].upper() + name[1:]: rule.get(name) or "" for name in ("rule", "message", "messageExpression")}
    rest = {
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    return _record({name: as_json(value) for name, value in (texts | rest).items()})


_NESTED: Final[dict[str, Callable[[Any], str]]] = {
    "items": _items,
    "allOf": _schemas,
    "oneOf": _schemas,
    "anyOf": _schemas,
    "not": internal_schema,
    "properties": _properties,
    "additionalProperties": _schema_or_flag,
    "additionalItems": _schema_or_flag,
    "patternProperties": _properties,
    "definitions": _properties,
    "x-kubernetes-validations": _rules,
}


def internal_versions(versions: list[JsonObject]) -> str:
    """The versions of a definition as the program prints them."""
    return "[" + ",".join(map(_version, versions)) + "]"


def _version(version: JsonObject) -> str:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    columns, fields = version.get("additionalPrinterColumns"), version.get("selectableFields")
    return _record(
        {
            "Name": as_json(version.get("name") or ""),
            **{name: as_json(bool(version.get(name.lower()))) for name in ("Served", "Storage", "Deprecated")},
            "DeprecationWarning": as_json(version.get("deprecationWarning")),
            "Schema": "null" if schema is None else _record({"OpenAPIV3Schema": internal_schema(schema)}),
            "Subresources": _subresources(version.get("subresources")),
            "AdditionalPrinterColumns": "null" if not columns else f"[{','.join(map(_column, columns))}]",
            "SelectableFields": "null"
            if not fields
            else f"[{','.join(_record({'JSONPath': as_json(field.get('jsonPath') or '')}) for field in fields)}]",
        }
    )


def _column(column: JsonObject) -> str:
    texts = {name: as_json(column.get(name.lower()) or "") for name in ("Name", "Type", "Format", "Description")}
    rest = {"Priority": as_json(column.get("priority") or 0), "JSONPath": as_json(column.get("jsonPath") or "")}
    return _record(texts | rest)


def _subresources(value: JsonObject | None) -> str:
    if value is None:
        return "null"
    scale = value.get("scale")
    paths = ("specReplicasPath", "statusReplicasPath")
    written = "null"
    if scale is not None:
        parts = {name[0].upper() + name[1:]: as_json(scale.get(name) or "") for name in paths}
        written = _record({**parts, "LabelSelectorPath": as_json(scale.get("labelSelectorPath"))})
    return _record({"Status": "null" if value.get("status") is None else "{}", "Scale": written})
