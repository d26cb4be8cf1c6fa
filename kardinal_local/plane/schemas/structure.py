"""Check that a schema is structural: every field is typed, and none is declared inside anyOf and the like alone.

Only then are pruning and defaulting the same whatever the value is. All faults are collected, each with its path below
the CRD, and told in the order of the alphabet: an author fixes them together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import forbidden, invalid, required
from kardinal_local.plane.schemas.checks import compile_pattern
from kardinal_local.plane.schemas.keywords import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    VALIDATIONS,
)

__all__ = ["structure_causes", "unusable"]

_INT_OR_STRING_BRANCHES: Final = [{"type": "integer"}, {"type": "string"}]
_EMPTY: Final = "must be empty to be structural"
_UNDEFINED: Final = "must be undefined to be structural"
_FALSE: Final = "must be false to be structural"
_NOT_IN_BRANCHES: Final = {
    "type": _EMPTY,
    "default": _UNDEFINED,
    "title": _EMPTY,
    "description": _EMPTY,
    "nullable": _FALSE,
    PRESERVE: _FALSE,
    EMBEDDED: _FALSE,
    INT_OR_STRING: _FALSE,
    LIST_KEYS: _EMPTY,
    LIST_TYPE: _UNDEFINED,
    MAP_TYPE: _UNDEFINED,
    VALIDATIONS: _EMPTY,
}
_GO_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
}
"""What RE2 says in C++, and what it says in Go."""
_WITHOUT_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_UNSUPPORTED: Final = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")


def structure_causes(schema: JsonObject, at: str) -> list[Cause]:
    """Why a schema is not structural."""
    causes = [*_invariants(schema, at, "root"), *_completeness(schema, schema, at, at)]
    return sorted(causes, key=lambda cause: f"{cause.field}: {cause.message}")


def unusable(schema: JsonObject) -> str | None:
    """What keeps a schema from being read as a structural one at all, anywhere in it."""
    for keyword in _UNSUPPORTED:
        if schema.get(keyword) or (keyword == "additionalItems" and keyword in schema):
            return (
                f"OpenAPIV3Schema '{keyword.removeprefix('$') if keyword == '$schema' else keyword}' is not supported"
            )
    if schema.get(PRESERVE) is False:
        return f"internal error: '{PRESERVE}' must be true or undefined"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return next((problem for child in _below(schema) if (problem := unusable(child)) is not None), None)


def _below(schema: JsonObject) -> Iterator[JsonObject]:
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(keyword) or ()
    for keyword in ("not", "items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield schema[keyword]
    yield from (schema.get("properties") or {}).values()


def _invariants(schema: JsonObject, at: str, level: str) -> Iterator[Cause]:
    kind, items = schema.get("type") or "", schema.get("items")
    fields: JsonObject = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    if kind == "array" and items is None:
        yield required(f"{at}.items", "must be specified")
    if isinstance(items, dict):
        yield from _invariants(items, f"{at}.items", "item")
    for name, child in fields.items():
        yield from _invariants(child, f"{at}.properties[{name}]", "field")
    if extra is not None and level == "root":
        yield forbidden(f"{at}.additionalProperties", "must not be used at the root")
    if isinstance(extra, dict):
        yield from _invariants(extra, f"{at}.additionalProperties", "field")
    yield from _extensions(schema, at)
    branches = schema.get("anyOf") == _INT_OR_STRING_BRANCHES
    first = (schema.get("allOf") or [{}])[0].get("anyOf") == _INT_OR_STRING_BRANCHES
    yield from _conditions(schema, at, skip_any=branches, skip_first=first)
    yield from _type(schema, at, level)
    if schema.get(EMBEDDED) and extra is not None:
        yield forbidden(f"{at}.additionalProperties", f"must not be used if {EMBEDDED} is set")
    yield from _identity(schema, at, level)
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not fields:
        yield required(f"{at}.properties", f"must not be empty if {EMBEDDED} is true without {PRESERVE}")


def _extensions(schema: JsonObject, at: str) -> Iterator[Cause]:
    for keyword in (PRESERVE, EMBEDDED):
        if schema.get(INT_OR_STRING) and schema.get(keyword):
            yield invalid(f"{at}.{keyword}", True, f"must be false if {INT_OR_STRING} is true")


def _type(schema: JsonObject, at: str, level: str) -> Iterator[Cause]:
    kind = schema.get("type") or ""
    if schema.get(EMBEDDED) and kind != "object":
        words = f"must be object if {EMBEDDED} is true"
        yield invalid(f"{at}.type", kind, words) if kind else required(f"{at}.type", words)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield required(f"{at}.type", _WITHOUT_TYPE[level])
    if level == "root" and kind and kind != "object":
        yield invalid(f"{at}.type", kind, "must be object at the root")


def _identity(schema: JsonObject, at: str, level: str) -> Iterator[Cause]:
    """The server knows what kind, apiVersion and metadata look like."""
    fields: JsonObject = schema.get("properties") or {}
    checked = level == "root" or bool(schema.get(EMBEDDED))
    for name in ("kind", "apiVersion"):
        if checked and name in fields and fields[name].get("type") != "string":
            yield invalid(f"{at}.properties[{name}].type", fields[name].get("type") or "", "must be string")
    metadata = fields.get("metadata")
    if metadata is None:
        return
    place = f"{at}.properties[metadata]"
    if checked and metadata.get("type") != "object":
        yield invalid(f"{place}.type", metadata.get("type") or "", "must be object")
    if level == "root" and not _restricts_names_only(metadata):
        yield forbidden(
            place,
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        )


def _restricts_names_only(metadata: JsonObject) -> bool:
    rest: dict[str, Any] = {key: value for key, value in metadata.items() if value and key not in ("type", "default")}
    names = rest.pop("properties", {})
    return not rest and set(names) <= {"name", "generateName"}


def _conditions(schema: JsonObject, at: str, *, skip_any: bool = False, skip_first: bool = False) -> Iterator[Cause]:
    if not skip_any:
        for index, branch in enumerate(schema.get("anyOf") or ()):
            yield from _branch(branch, f"{at}.anyOf[{index}]")
    for index, branch in enumerate(schema.get("allOf") or ()):
        yield from _branch(branch, f"{at}.allOf[{index}]", skip_any=skip_first and index == 0)
    for index, branch in enumerate(schema.get("oneOf") or ()):
        yield from _branch(branch, f"{at}.oneOf[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _branch(schema["not"], f"{at}.not")
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except re2.error as error:
            words = f"must be a valid regular expression, but isn't: error parsing regexp: {_told(error)}"
            yield invalid(f"{at}.pattern", schema["pattern"], words)


def _told(error: Exception) -> str:
    """RE2's own words; Go's put the culprit between backquotes."""
    told = error.args[0] if error.args else b""
    text = told.decode() if isinstance(told, bytes) else str(told)
    words, _, culprit = text.partition(": ")
    words = _GO_WORDS.get(words, words)
    return f"{words}: `{culprit}`"


def _branch(schema: JsonObject, at: str, *, skip_any: bool = False) -> Iterator[Cause]:
    yield from _conditions(schema, at, skip_any=skip_any)
    if isinstance(schema.get("items"), dict):
        yield from _branch(schema["items"], f"{at}.items")
    fields: JsonObject = schema.get("properties") or {}
    for name, child in fields.items():
        yield from _branch(child, f"{at}.properties[{name}]")
    if schema.get("additionalProperties"):
        yield forbidden(f"{at}.additionalProperties", _UNDEFINED)
    for keyword, words in _NOT_IN_BRANCHES.items():
        if schema.get(keyword) or (keyword == "default" and schema.get(keyword) is not None):
            yield forbidden(f"{at}.{keyword}", words)
    if "metadata" in fields:
        yield forbidden(f"{at}.properties[metadata]", "must not be specified in a nested context")


def _completeness(branch: JsonObject, schema: JsonObject, at: str, place: str) -> Iterator[Cause]:
    """What conditions speak of and the schema beside them does not."""
    for keyword in ("not", "allOf", "anyOf", "oneOf"):
        branches = branch.get(keyword) or ()
        if keyword == "not" and branches:
            yield from _missing(branches, schema, at, f"{place}.not")
            continue
        for index, one in enumerate(branches):
            yield from _missing(one, schema, at, f"{place}.{keyword}[{index}]")


def _missing(branch: JsonObject, schema: JsonObject | None, at: str, place: str) -> Iterator[Cause]:
    if schema is None:
        yield required(at, f"because it is defined in {place}")
        return
    yield from _completeness(branch, schema, at, place)
    items = schema.get("items")
    if isinstance(branch.get("items"), dict):
        known = items if isinstance(items, dict) else None
        yield from _missing(branch["items"], known, f"{at}.items", f"{place}.items")
    for name, child in (branch.get("properties") or {}).items():
        known = (schema.get("properties") or {}).get(name)
        yield from _missing(child, known, f"{at}.properties[{name}]", f"{place}.properties[{name}]")
