"""The fields that an applied configuration speaks of.

Naming a field is claiming it, so a configuration must fit its schema: a field that the schema does not have, or an
element without its key, could not be owned by anybody. Everything that is wrong is said at once.
Design: local-plane.md 5.2 (ssa).
"""

from __future__ import annotations

from typing import Any

from kardinal.localplane.apply.fieldsets import FieldSet, shown_step, with_self
from kardinal.localplane.apply.shapes import ANY, child_schema, element, is_atomic_list, is_atomic_map, key_of
from kardinal.localplane.documents import JsonObject

__all__ = ["NotTyped", "field_set"]

_IDENTITY = ("apiVersion", "kind", "metadata")


class NotTyped(ValueError):
    """A configuration has a field or an element that its schema does not know."""


def field_set(value: JsonObject, schema: JsonObject) -> FieldSet:
    """The fields that an applied configuration speaks of; refuses what its schema does not know."""
    problems: list[str] = []
    fields = _fields_of(value, schema, "", problems)
    if problems:
        raise NotTyped(problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *sorted(problems)]))
    return fields


def _fields_of(value: JsonObject, schema: JsonObject, path: str, problems: list[str]) -> FieldSet:
    properties = schema.get("properties", ANY)
    fields: FieldSet = {}
    for key, item in value.items():
        child = properties.get(key)
        if child is not None:
            node = _set_of(item, child, f"{path}.{key}", problems)
            if node is not None:
                fields[f"f:{key}"] = node
        elif _allows(schema, key):
            # An entry of a map belongs to whoever names it; a declared field is only the way to its content.
            fields[f"f:{key}"] = with_self(_set_of(item, child_schema(schema, key), f"{path}.{key}", problems))
        else:
            problems.append(f"{path}.{key}: field not declared in schema")
    return fields


def _set_of(value: Any, schema: JsonObject, path: str, problems: list[str]) -> FieldSet | None:
    """None for a keyed list without elements, and for what holds nothing else: naming it owns nothing."""
    if value.__class__ is dict:
        if not value or is_atomic_map(schema):
            return {}
        return _fields_of(value, schema, path, problems) or None
    if value.__class__ is not list or is_atomic_list(schema):
        return {}
    fields: FieldSet = {}
    items = schema.get("items", ANY)
    for index, item in enumerate(value):
        problem = _unidentified(item, schema)
        if problem is not None:
            problems.append(f"{path}: element {index}: {problem}")
            continue
        step = element(item, schema)
        if step in fields:
            problems.append(f"{path}: duplicate entries for key {shown_step(step)}")
        fields[step] = with_self(_set_of(item, items, f"{path}{shown_step(step)}", problems))
    return fields or None


def _allows(schema: JsonObject, key: str) -> bool:
    """Whether a field that is not declared may stand here."""
    return bool(
        schema.get("additionalProperties")
        or schema.get("x-kubernetes-preserve-unknown-fields")
        or "properties" not in schema
        or (schema.get("x-kubernetes-embedded-resource") and key in _IDENTITY)
    )


def _unidentified(item: Any, schema: JsonObject) -> str | None:
    """Why an element of a keyed list has no identity."""
    keys = schema.get("x-kubernetes-list-map-keys", ())
    if keys and item.__class__ is not dict:
        return "associative list with keys may not have non-map elements"
    for key in keys:
        if key_of(item, key, schema) is None:
            return f'associative list with keys has an element that omits key field "{key}"'
    return None
