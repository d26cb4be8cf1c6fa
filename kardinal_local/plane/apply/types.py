"""The types of server-side apply: which parts of an object are owned as a whole, and which part by part.

A type says for each form a value can take (scalar, list, map) what is owned: a scalar and an atomic list or map as a
whole, the elements of a keyed list or a set one by one, the entries of a granular map by name. Where a schema leaves
the form open the value decides. The rules are those by which the real server reads its OpenAPI document, oddities
included: content below a preserved field is preserved all the way down, and a string with a format may be any scalar.

A type is made once per schema and shared by all requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from kardinal_local.plane.builtin import object_meta
from kardinal_local.plane.documents import JsonObject

__all__ = ["ANY", "Form", "Type", "type_of"]


class Form(Enum):
    """What a value is; where it could be several things, the first of map, scalar and list counts."""

    MAP = "map"
    SCALAR = "scalar"
    LIST = "list"


@dataclass(slots=True, eq=False)
class Type:
    """What values at one place may be, and who owns what of them; `scalar` is empty where no scalar may be.

    `element`: the type of entries that `fields` does not name, None where there may be none.
    `items`: the type of list elements. Elements are known by the values of `keys`, or by themselves in a set.
    """

    scalar: str = ""
    is_map: bool = False
    fields: dict[str, Type] = field(default_factory=dict)
    element: Type | None = None
    atomic_map: bool = False
    is_list: bool = False
    items: Type | None = None
    atomic_list: bool = True
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=dict)

    def form(self, value: Any) -> Form:
        """How to look at a value; null and what does not fit have the first form there is."""
        found = value.__class__
        if found is dict:
            if self.is_map:
                return Form.MAP
        elif found is list:
            if self.is_list:
                return Form.LIST
        elif value is not None and self.scalar:
            return Form.SCALAR
        if self.is_map:
            return Form.MAP
        return Form.SCALAR if self.scalar else Form.LIST

    def child(self, key: str) -> Type:
        """The type of a field; what no schema declares is anything."""
        return self.fields.get(key) or self.element or ANY

    @property
    def elements(self) -> Type:
        return self.items or ANY


_UNTYPED: Final = "untyped"
_ATOMIC: Final = Type(scalar=_UNTYPED, is_map=True, atomic_map=True, is_list=True)
ANY: Final = Type(scalar=_UNTYPED, is_map=True, is_list=True, items=_ATOMIC)
"""What preserved content is: granular maps, atomic lists."""
ANY.element = ANY
_ATOMIC.element = _ATOMIC.items = _ATOMIC

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_SCALARS: Final = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}
_Known = dict[tuple[int, bool], Type]
"""What was compiled already; a built-in schema may refer to itself."""
_PLAIN_FORMATS: Final = frozenset({"", "byte"})


@dataclass(frozen=True, slots=True, eq=False)
class _ByIdentity:
    """A schema as a key: equal when it is the same dictionary, which the cache keeps alive."""

    schema: JsonObject

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and self.schema is other.schema


def type_of(schema: JsonObject | None) -> Type:
    """The type of a kind's objects; without a schema everything but the metadata is anything."""
    return _WITHOUT_SCHEMA if schema is None else _root(_ByIdentity(schema))


@lru_cache(maxsize=512)
def _root(key: _ByIdentity) -> Type:
    return _with_identity(_compile(key.schema, {}))


def _with_identity(found: Type) -> Type:
    """The fields that every object has."""
    found.fields = {**found.fields, "apiVersion": _STRING, "kind": _STRING, "metadata": _METADATA}
    return found


def _compile(schema: JsonObject, known: _Known, *, preserved: bool = False) -> Type:
    preserved = preserved or schema.get(_PRESERVE) is True
    place = (id(schema), preserved)
    if place in known:
        return known[place]
    result = known[place] = Type()
    match schema.get("type", ""):
        case "object":
            _map(schema, result, known, preserved=preserved)
        case "array":
            _list(schema, result, known, preserved=preserved)
        case "string":
            result.scalar = "string" if schema.get("format", "") in _PLAIN_FORMATS else _UNTYPED
        case ("integer" | "number" | "boolean") as name:
            result.scalar = _SCALARS[name]
        case _:
            result.scalar = _UNTYPED
            _list(schema, result, known, preserved=preserved)
            _map(schema, result, known, preserved=preserved)
    return _with_identity(result) if schema.get(_EMBEDDED) else result


def _map(schema: JsonObject, result: Type, known: _Known, *, preserved: bool) -> None:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    result.is_map = True
    result.atomic_map = schema.get("x-kubernetes-map-type") == "atomic"
    result.fields = {name: _compile(child, known, preserved=preserved) for name, child in properties.items()}
    if isinstance(extra, dict):
        result.element = _compile(extra, known, preserved=preserved)
    elif extra is True or (extra is None and (preserved or not (properties or schema.get(_EMBEDDED)))):
        result.element = ANY


def _list(schema: JsonObject, result: Type, known: _Known, *, preserved: bool) -> None:
    items = schema.get("items")
    result.is_list = True
    result.items = _compile(items, known, preserved=preserved) if isinstance(items, dict) else _ATOMIC
    result.atomic_list = schema.get("x-kubernetes-list-type", "atomic") == "atomic"
    result.keys = tuple(sorted(schema.get("x-kubernetes-list-map-keys") or ()))
    if result.keys and isinstance(items, dict):
        declared = {key: (items.get("properties") or {}).get(key, {}).get("default") for key in result.keys}
        result.key_defaults = {key: value for key, value in declared.items() if value is not None}


_STRING: Final = Type(scalar="string")
_METADATA: Final = _compile(object_meta(), {})
_WITHOUT_SCHEMA: Final = _with_identity(Type(is_map=True, element=ANY))
