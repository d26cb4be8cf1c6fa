"""Convert a pydantic model to the structural schema of a CustomResourceDefinition.

An API server accepts neither `$ref` nor `anyOf` with null, estimates the cost of CEL rules from the bounds of their
fields, and prunes fields that the schema does not name. So references are replaced by their definitions, an optional
field is one that may be absent, and only scalars in `spec` keep their defaults: with a default object, the server would
write fields that the author left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from kardinal.models.descriptions import field_descriptions
from kardinal.objects.duration import format_duration

__all__ = ["structural_schema"]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_KEPT = (
    "type",
    "format",
    "description",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
)


class _JsonSchema(GenerateJsonSchema):
    """Write durations in the notation of Go, such as `5m`, also as defaults, and add the docstrings of the fields."""

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Return the schema of a model with the descriptions of its fields."""
        result = super().model_schema(schema)
        model = schema["cls"]
        for name, text in field_descriptions(model).items():
            key = model.model_fields[name].alias or name
            if key in result.get("properties", {}):
                result["properties"][key]["description"] = text
        return result


def structural_schema(model: type[BaseModel], *, defaults: bool) -> dict[str, Any]:
    """Return the structural schema of `model`; with `defaults`, the defaults of scalars are part of it."""
    schema = model.model_json_schema(by_alias=True, mode="validation", schema_generator=_JsonSchema)
    definitions = schema.get("$defs", {})
    return _structural(schema, definitions, defaults=defaults)


def _structural(node: Mapping[str, Any], definitions: Mapping[str, Any], *, defaults: bool) -> dict[str, Any]:
    node = _resolved(node, definitions)
    result: dict[str, Any] = {key: node[key] for key in _KEPT if key in node}
    result |= {key: value for key, value in node.items() if key.startswith("x-kubernetes-")}
    if "const" in node:
        result |= {"type": "string", "enum": [node["const"]]}
    if result.get("type") == "integer":
        result["format"] = "int64"
    if result.get("type") == "object":
        _add_members(result, node, definitions, defaults=defaults)
    if "items" in node:
        result["items"] = _structural(node["items"], definitions, defaults=defaults)
    if defaults and isinstance(node.get("default"), (str, int, float, bool)) and node.get("default") != "":
        result["default"] = node["default"]
    return result


def _add_members(
    result: dict[str, Any], node: Mapping[str, Any], definitions: Mapping[str, Any], *, defaults: bool
) -> None:
    if result.get(_PRESERVE):
        return
    if "properties" in node:
        result["properties"] = {
            name: _structural(field, definitions, defaults=defaults) for name, field in node["properties"].items()
        }
    elif isinstance(node.get("additionalProperties"), Mapping):
        result["additionalProperties"] = _structural(node["additionalProperties"], definitions, defaults=defaults)
    elif node.get("additionalProperties"):
        result[_PRESERVE] = True


def _resolved(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `node` with its reference replaced by the definition, and without null among its alternatives."""
    if "$ref" in node:
        target = definitions[node["$ref"].removeprefix("#/$defs/")]
        return _resolved({**target, **{key: value for key, value in node.items() if key != "$ref"}}, definitions)
    if "anyOf" in node:
        (only,) = [option for option in node["anyOf"] if option.get("type") != "null"]
        return _resolved({**only, **{key: value for key, value in node.items() if key != "anyOf"}}, definitions)
    return node
