"""Validate the schema of a CRD node by node: keywords, lists and their keys, and the form of its rules.

Rules are compiled only where nothing else is wrong at their node or below: the type of a broken schema would refuse
good rules with words that mislead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import forbidden, invalid, not_supported, required
from kardinal_local.plane.schemas.fieldpaths import FieldPathError, find_field
from kardinal_local.plane.schemas.keywords import (
    EMBEDDED,
    IDENTITY,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    VALIDATIONS,
)
from kardinal_local.plane.schemas.rules import rule_causes

__all__ = ["Inspection", "Place"]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LIST_TYPES: Final = ("atomic", "set", "map")
_MAP_TYPES: Final = ("atomic", "granular")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LINE_BREAKS: Final = re.compile(r"[\n\r]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a schema stands: its path, and what is forbidden there because of what is around it."""

    at: str
    root: bool = False
    ruled: bool = True
    in_metadata: bool = False
    no_defaults: str = ""
    no_old_self: str = ""

    def below(self, step: str, **changes: Any) -> Place:
        return replace(self, at=f"{self.at}{step}", root=False, **changes)


class Inspection:
    """One run over one schema; faults of rules are told after those of the schema."""

    def __init__(self) -> None:
        self.schema_causes: list[Cause] = []
        self.rule_causes: list[Cause] = []

    @property
    def causes(self) -> list[Cause]:
        return self.schema_causes + self.rule_causes

    def inspect(self, schema: JsonObject, place: Place) -> None:
        before = len(self.schema_causes)
        self.schema_causes += _keywords(schema, place)
        self._children(schema, place)
        self.schema_causes += _extensions(schema, place.at)
        self.schema_causes += _list_type(schema, place.at)
        self.schema_causes += _keys(schema, place.at)
        rules: list[JsonObject] = schema.get(VALIDATIONS) or []
        for index, rule in enumerate(rules):
            self.schema_causes += _form(rule, schema, f"{place.at}.{VALIDATIONS}[{index}]")
        if rules and place.ruled and len(self.schema_causes) == before:
            self.rule_causes += rule_causes(schema, place.at, root=place.root, uncorrelatable=place.no_old_self)

    def _children(self, schema: JsonObject, place: Place) -> None:
        extra, items = schema.get("additionalProperties"), schema.get("items")
        if isinstance(extra, dict):
            banned = "inside additionalProperties applying to object metadata" if place.in_metadata else ""
            self.inspect(extra, place.below(".additionalProperties", no_defaults=place.no_defaults or banned))
        for name, child in (schema.get("properties") or {}).items():
            self.inspect(child, self._property(schema, place, name))
        if isinstance(schema.get("not"), dict):
            self.inspect(schema["not"], place.below(".not", ruled=False))
        for keyword in ("allOf", "oneOf", "anyOf"):
            for index, branch in enumerate(schema.get(keyword) or ()):
                self.inspect(branch, place.below(f".{keyword}[{index}]", ruled=False))
        if isinstance(items, dict):
            banned = "" if schema.get(LIST_TYPE) == "map" else place.at
            self.inspect(items, place.below(".items", no_old_self=place.no_old_self or banned))

    def _property(self, schema: JsonObject, place: Place, name: str) -> Place:
        changes: dict[str, Any] = {}
        if schema.get(MAP_TYPE) not in (None, *_MAP_TYPES):
            changes["no_old_self"] = place.no_old_self or place.at
        if (place.root or schema.get(EMBEDDED)) and name in IDENTITY:
            changes["in_metadata"] = True
            if place.root:
                changes["no_defaults"] = f"in top-level {name}"
        return place.below(f".properties[{name}]", **changes)


def _keywords(schema: JsonObject, place: Place) -> Iterator[Cause]:
    at, kind = place.at, schema.get("type") or ""
    if kind and kind not in _TYPES:
        yield not_supported(f"{at}.type", kind, _TYPES)
    if schema.get("default") is not None and place.no_defaults:
        yield forbidden(f"{at}.default", f"must not be set {place.no_defaults}")
    for keyword in _UNSUPPORTED:
        if schema.get(keyword) or (keyword in ("additionalItems", "$ref") and schema.get(keyword) is not None):
            yield forbidden(f"{at}.{keyword}", f"{keyword} is not supported")
    if kind == "null":
        yield forbidden(f"{at}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{at}.items", "items must be a schema object and not an array")
    if place.in_metadata and schema.get(EMBEDDED):
        yield forbidden(f"{at}.{EMBEDDED}", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{at}.uniqueItems", words)
    extra = schema.get("additionalProperties")
    if extra is not None and extra is not True and schema.get("properties"):
        yield forbidden(f"{at}.additionalProperties", "additionalProperties and properties are mutual exclusive")


def _extensions(schema: JsonObject, at: str) -> Iterator[Cause]:
    kind, map_type = schema.get("type") or "", schema.get(MAP_TYPE)
    if schema.get(PRESERVE) is False:
        yield invalid(f"{at}.{PRESERVE}", False, "must be true or undefined")
    if map_type is not None and kind != "object":
        yield _typed(at, kind, f"must be object if {MAP_TYPE} is specified")
    if map_type is not None and map_type not in _MAP_TYPES:
        yield not_supported(f"{at}.{MAP_TYPE}", map_type, _MAP_TYPES)


def _typed(at: str, kind: str, words: str) -> Cause:
    return invalid(f"{at}.type", kind, words) if kind else required(f"{at}.type", words)


def _list_type(schema: JsonObject, at: str) -> Iterator[Cause]:
    list_type, kind, items = schema.get(LIST_TYPE), schema.get("type") or "", schema.get("items")
    if list_type is None:
        return
    if kind != "array":
        yield _typed(at, kind, f"must be array if {LIST_TYPE} is specified")
    elif list_type == "set" and isinstance(items, dict):
        words = f"must be atomic as item of a list with {LIST_TYPE}=set"
        if items.get("type") == "array" and items.get(LIST_TYPE) not in (None, "atomic"):
            yield invalid(f"{at}.items.{LIST_TYPE}", items[LIST_TYPE], words)
        elif items.get("type") == "object" and items.get(MAP_TYPE) != "atomic":
            yield invalid(f"{at}.items.{MAP_TYPE}", items.get(LIST_TYPE), words)
    if list_type not in _LIST_TYPES:
        yield not_supported(f"{at}.{LIST_TYPE}", list_type, _LIST_TYPES)


def _keys(schema: JsonObject, at: str) -> Iterator[Cause]:
    list_type, keys, items = schema.get(LIST_TYPE), schema.get(LIST_KEYS) or [], schema.get("items")
    if keys and list_type != "map":
        words = f"must be map if {LIST_KEYS} is non-empty"
        place = f"{at}.{LIST_TYPE}"
        yield required(place, words) if list_type is None else invalid(place, list_type, words)
    if list_type == "map":
        if not keys:
            yield required(f"{at}.{LIST_KEYS}", f"must not be empty if {LIST_TYPE} is map")
        if items is None:
            yield required(f"{at}.items", f"must have a schema if {LIST_TYPE} is map")
        elif isinstance(items, dict) and items.get("type") != "object":
            words = f"must be object if parent array's {LIST_TYPE} is map"
            yield invalid(f"{at}.items.type", items.get("type") or "", words)
        elif isinstance(items, dict):
            yield from _key_names(keys, items, at)
    if list_type in ("set", "map") and isinstance(items, dict):
        if items.get("nullable"):
            yield forbidden(f"{at}.items.nullable", f"cannot be nullable when {LIST_TYPE} is {list_type}")
        if list_type == "map":
            yield from _key_values(keys, items, at)


def _key_names(keys: list[str], items: JsonObject, at: str) -> Iterator[Cause]:
    fields: JsonObject = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in fields:
            yield invalid(f"{at}.{LIST_KEYS}", keys, "entries must all be names of item properties")
        elif fields[key].get("type") in ("array", "object"):
            words = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            yield invalid(f"{at}.items.properties[{key}].type", items["type"], words)
        if key in keys[:index]:
            yield invalid(f"{at}.{LIST_KEYS}", keys, "must not contain duplicate entries")


def _key_values(keys: list[str], items: JsonObject, at: str) -> Iterator[Cause]:
    fields: JsonObject = items.get("properties") or {}
    for key in keys:
        if key not in fields:
            continue
        place = f"{at}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and fields[key].get("default") is None:
            words = f"this property is in {LIST_KEYS}, so it must have a default or be a required property"
            yield required(f"{place}.default", words)
        if fields[key].get("nullable"):
            yield forbidden(f"{place}.nullable", f"this property is in {LIST_KEYS}, so it cannot be nullable")


def _form(rule: JsonObject, schema: JsonObject, at: str) -> Iterator[Cause]:
    """Everything about a rule that can be said without compiling it."""
    text, message = rule.get("rule") or "", rule.get("message") or ""
    expression, path = rule.get("messageExpression") or "", rule.get("fieldPath") or ""
    if not text.strip():
        yield required(f"{at}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{at}.message", message, "must be non-empty if specified")
    elif _LINE_BREAKS.search(message.strip()):
        yield invalid(f"{at}.message", message, "must not contain line breaks")
    elif _LINE_BREAKS.search(text.strip()) and not message.strip():
        yield required(f"{at}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        yield required(f"{at}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield not_supported(f"{at}.reason", rule["reason"], _REASONS)
    if path and not path.strip():
        yield invalid(f"{at}.fieldPath", path, "must be non-empty if specified")
    if _LINE_BREAKS.search(path):
        yield invalid(f"{at}.fieldPath", path, "must not contain line breaks")
    if path:
        try:
            find_field(path, schema)
        except FieldPathError:
            yield invalid(f"{at}.fieldPath", path, "must be a valid path")
