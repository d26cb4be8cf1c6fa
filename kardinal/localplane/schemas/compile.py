"""From `openAPIV3Schema` to nodes, refusing what the real server refuses.

A schema must be structural: every field typed, nothing hidden in anyOf and friends, so that pruning and defaulting are
the same whatever the value is. All faults are collected, each with its path below the CRD, because an author fixes
them together. Defaults are put through the finished nodes: one that its own schema refuses would make every object
invalid. Design: local-plane.md 2.3 (CRDs).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause
from kardinal.localplane.schemas.causes import forbidden, invalid, not_supported, required
from kardinal.localplane.schemas.checks import Check, PatternError, compile_checks
from kardinal.localplane.schemas.junctors import all_of, any_of, negation, one_of
from kardinal.localplane.schemas.nodes import (
    CLASSES,
    ArrayNode,
    Judge,
    LooseNode,
    Node,
    ObjectNode,
    Report,
    ScalarNode,
)

__all__ = ["Compiler"]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_LIST_TYPE = "x-kubernetes-list-type"
_LIST_KEYS = "x-kubernetes-list-map-keys"
_MAP_TYPE = "x-kubernetes-map-type"
_IDENTITY = frozenset({"apiVersion", "kind", "metadata"})
_FORBIDDEN = (
    "$ref",
    "definitions",
    "dependencies",
    "patternProperties",
    "additionalItems",
    "deprecated",
    "discriminator",
    "id",
)
_NOT_IN_JUNCTORS = ("default", "additionalProperties", "nullable", "title", "description", "type")
_OBJECT_KEYWORDS = (
    "properties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
    _EMBEDDED,
    _PRESERVE,
)
_ARRAY_KEYWORDS = ("items", "minItems", "maxItems", _LIST_TYPE, _LIST_KEYS, _PRESERVE)
_JUNCTORS: Mapping[str, Callable[[tuple[Node, ...]], Judge]] = {"allOf": all_of, "anyOf": any_of, "oneOf": one_of}


class Compiler:
    """One run over one schema; `causes` holds what was found."""

    def __init__(self) -> None:
        self.causes: list[Cause] = []

    def root(self, source: JsonObject, at: str) -> Node:
        """The node of a whole object: its type meta and metadata belong to the server, not to the schema."""
        if source.get("type") != "object":
            self.causes.append(invalid((None, f"{at}.type"), source.get("type", ""), "must be object at the root"))
        return self.node({**source, "type": "object"}, at, kept=_IDENTITY)

    def node(self, source: Any, at: str, *, kept: frozenset[str] = frozenset()) -> Node:
        if not isinstance(source, dict):
            self.causes.append(invalid((None, at), "", "must be a schema object"))
            return LooseNode()
        self._refuse_keywords(source, at)
        if source.get(_EMBEDDED):
            kept = _IDENTITY
        kind = source.get("type")
        if kind is None or kind == "":
            if not source.get(_PRESERVE) and not source.get(_INT_OR_STRING):
                self.causes.append(required((None, f"{at}.type"), "must not be empty for specified object fields"))
            return self._loose(source, at, kept=kept)
        if kind == "object":
            return self._object(source, at, kept=kept)
        if kind == "array":
            return self._array(source, at)
        if kind not in CLASSES:
            self.causes.append(not_supported((None, f"{at}.type"), kind, sorted(CLASSES)))
            return LooseNode()
        checks, judges = self._checks(source, at), self._judges(source, at)
        return ScalarNode(
            kind,
            nullable=bool(source.get("nullable")),
            checks=checks,
            judges=judges,
            plain=None if checks or judges else CLASSES[kind],
        )

    def _refuse_keywords(self, source: JsonObject, at: str) -> None:
        for keyword in _FORBIDDEN:
            if source.get(keyword):
                self.causes.append(forbidden((None, f"{at}.{keyword}"), f"{keyword} is not supported"))
        if source.get("uniqueItems"):
            self.causes.append(
                forbidden(
                    (None, f"{at}.uniqueItems"),
                    "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
                )
            )
        if source.get("additionalProperties") is False:
            self.causes.append(
                forbidden((None, f"{at}.additionalProperties"), "must not be false: use properties alone")
            )
        if source.get("properties") and source.get("additionalProperties"):
            self.causes.append(
                forbidden(
                    (None, f"{at}.additionalProperties"), "additionalProperties and properties are mutual exclusive"
                )
            )

    def _object(self, source: JsonObject, at: str, *, kept: frozenset[str] = frozenset()) -> ObjectNode:
        properties = {
            key: self.node(value, f"{at}.properties[{key}]")
            for key, value in source.get("properties", {}).items()
            if key not in kept
        }
        extra = source.get("additionalProperties")
        additional = self.node(extra, f"{at}.additionalProperties") if isinstance(extra, dict) else None
        map_type = source.get(_MAP_TYPE, "granular")
        if map_type not in ("granular", "atomic"):
            self.causes.append(not_supported((None, f"{at}.{_MAP_TYPE}"), map_type, ["granular", "atomic"]))
        return ObjectNode(
            properties=properties,
            additional=additional,
            preserve=bool(source.get(_PRESERVE)) or extra is True,
            kept=kept,
            defaults=self._defaults(source, properties, at),
            required=tuple(source.get("required", ())),
            filled=("apiVersion", "kind") if source.get(_EMBEDDED) else (),
            least=source.get("minProperties"),
            most=source.get("maxProperties"),
            nullable=bool(source.get("nullable")),
            checks=self._checks(source, at),
            judges=self._judges(source, at),
        )

    def _defaults(
        self, source: JsonObject, properties: Mapping[str, Node], at: str
    ) -> tuple[tuple[str, Any, Node], ...]:
        defaults = []
        for key, child in properties.items():
            schema = source["properties"][key]
            if not isinstance(schema, dict) or "default" not in schema:
                continue
            place = f"{at}.properties[{key}].default"
            default, report = schema["default"], Report()
            if default is None:
                if not child.nullable:
                    self.causes.append(
                        invalid((None, place), default, "must not be null for a field that is not nullable")
                    )
                continue
            child.process(default, None, report)
            if report.unknown:
                self.causes.append(invalid((None, place), default, "must not have unknown fields"))
            for _, cause in report.causes:
                self.causes.append(Cause(cause.reason, place, cause.message))
            defaults.append((key, default, child))
        return tuple(defaults)

    def _array(self, source: JsonObject, at: str) -> ArrayNode:
        items = source.get("items")
        if items is None and not source.get(_PRESERVE):
            self.causes.append(required((None, f"{at}.items"), "must be specified"))
        list_type = source.get(_LIST_TYPE, "atomic")
        if list_type not in ("atomic", "set", "map"):
            self.causes.append(not_supported((None, f"{at}.{_LIST_TYPE}"), list_type, ["atomic", "map", "set"]))
        keys = tuple(source.get(_LIST_KEYS, ()))
        if list_type == "map":
            self._check_keys(items, keys, at)
        elif keys:
            self.causes.append(forbidden((None, f"{at}.{_LIST_KEYS}"), f"must not be set unless {_LIST_TYPE} is map"))
        return ArrayNode(
            items=self.node(items, f"{at}.items") if items is not None else None,
            least=source.get("minItems"),
            most=source.get("maxItems"),
            unique=list_type == "set",
            keys=keys,
            nullable=bool(source.get("nullable")),
            checks=self._checks(source, at),
            judges=self._judges(source, at),
        )

    def _check_keys(self, items: Any, keys: tuple[str, ...], at: str) -> None:
        place = f"{at}.{_LIST_KEYS}"
        if not keys:
            self.causes.append(required((None, place), f"must not be empty if {_LIST_TYPE} is map"))
        if not isinstance(items, dict) or items.get("type") != "object":
            self.causes.append(invalid((None, f"{at}.items.type"), "", f"must be object if {_LIST_TYPE} is map"))
            return
        properties, needed = items.get("properties", {}), items.get("required", [])
        if not all(isinstance(properties.get(key), dict) for key in keys):
            self.causes.append(invalid((None, place), list(keys), "entries must all be names of item properties"))
        for key in keys:
            schema = properties.get(key)
            if isinstance(schema, dict) and key not in needed and "default" not in schema:
                self.causes.append(
                    required(
                        (None, f"{at}.items.properties[{key}].default"),
                        f"this property is in {_LIST_KEYS}, so it must have a default or be a required property",
                    )
                )

    def _loose(self, source: JsonObject, at: str, *, kept: frozenset[str]) -> LooseNode:
        shape = {keyword: source[keyword] for keyword in _OBJECT_KEYWORDS if keyword in source}
        rows = {keyword: source[keyword] for keyword in _ARRAY_KEYWORDS if keyword in source}
        shaped = kept or shape.keys() - {_PRESERVE}
        return LooseNode(
            types=("integer", "string") if source.get(_INT_OR_STRING) else (),
            object=self._object(shape, at, kept=kept) if shaped else None,
            array=self._array(rows, at) if rows.keys() - {_PRESERVE} else None,
            nullable=bool(source.get("nullable")),
            checks=self._checks(source, at),
            judges=self._judges(source, at),
        )

    def _checks(self, source: JsonObject, at: str) -> tuple[Check, ...]:
        try:
            return compile_checks(source)
        except PatternError:
            self.causes.append(
                invalid((None, f"{at}.pattern"), source["pattern"], "must be a valid regular expression (RE2 syntax)")
            )
            return ()

    def _judges(self, source: JsonObject, at: str) -> tuple[Judge, ...]:
        typed = bool(source.get(_INT_OR_STRING))
        judges = [
            make(
                tuple(
                    self._branch(branch, f"{at}.{keyword}[{index}]", typed=typed)
                    for index, branch in enumerate(source[keyword])
                )
            )
            for keyword, make in _JUNCTORS.items()
            if source.get(keyword)
        ]
        if source.get("not"):
            judges.append(negation(self._branch(source["not"], f"{at}.not", typed=False)))
        return tuple(judges)

    def _branch(self, source: JsonObject, at: str, *, typed: bool) -> Node:
        """A condition inside a junctor; `typed` allows the `anyOf: [integer, string]` idiom of int-or-string."""
        for keyword in _NOT_IN_JUNCTORS:
            if keyword in source and not (typed and keyword == "type"):
                self.causes.append(forbidden((None, f"{at}.{keyword}"), "must be empty to be structural"))
        properties = {
            key: self._branch(value, f"{at}.properties[{key}]", typed=False)
            for key, value in source.get("properties", {}).items()
        }
        items = source.get("items")
        return LooseNode(
            types=(source["type"],) if typed and "type" in source else (),
            object=ObjectNode(
                properties,
                preserve=True,
                required=tuple(source.get("required", ())),
                least=source.get("minProperties"),
                most=source.get("maxProperties"),
            ),
            array=ArrayNode(
                items=self._branch(items, f"{at}.items", typed=False) if items else None,
                least=source.get("minItems"),
                most=source.get("maxItems"),
            ),
            nullable=True,
            checks=self._checks(source, at),
            judges=self._judges(source, at),
        )
