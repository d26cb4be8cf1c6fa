"""Of what type an expression is, as far as its schema tells.

The real server refuses a rule that is no boolean when its CRD is created; one that got past us would refuse every
object of its kind on this server and could not be created on a cluster. Nothing is guessed: what depends on data, on
a comprehension's variable or on an optional has no type here and is judged when it is evaluated.
Design: local-plane.md 2.3 (CRDs), 4 (CEL).
"""

from __future__ import annotations

from typing import Final

from kardinal.cel.references import chain
from kardinal.cel.syntax import (
    Call,
    Comprehension,
    Conditional,
    Constant,
    Has,
    ListLiteral,
    Logical,
    MapLiteral,
    Name,
    Node,
    TypeName,
)
from kardinal.localplane.documents import JsonObject

__all__ = ["child_schema", "type_of"]

_IMPLIED: Final = frozenset({"apiVersion", "kind", "metadata"})
_CONSTANTS: Final = {bool: "bool", int: "int", float: "double", str: "string", type(None): "null_type"}
_SCHEMA_TYPES: Final = {"boolean": "bool", "integer": "int", "number": "double", "array": "list", "object": "map"}
_FORMATS: Final = {"date": "timestamp", "date-time": "timestamp", "duration": "duration"}
_MACROS: Final = {"all": "bool", "exists": "bool", "exists_one": "bool", "filter": "list", "map": "list"}
_FUNCTIONS: Final[dict[str, str]] = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "!", "in"), "bool"),
    **dict.fromkeys(("contains", "startsWith", "endsWith", "matches", "hasValue", "bool"), "bool"),
    **dict.fromkeys(("size", "indexOf", "lastIndexOf", "int", "%"), "int"),
    **dict.fromkeys(("replace", "join", "lowerAscii", "upperAscii", "trim", "substring", "charAt", "string"), "string"),
    **{"split": "list", "double": "double", "timestamp": "timestamp", "duration": "duration", "type": "type"},
    "dyn": "dyn",
}
_CLOSED: Final = frozenset({"int", "double", "string", "list"})
"""Types whose arithmetic yields the type itself; moments and durations mix."""


def type_of(node: Node, schema: JsonObject) -> str | None:
    """The CEL type of an expression over `self`; None when only the data can tell."""
    match node:
        case Constant(value=value):
            return _CONSTANTS.get(type(value))
        case Has() | Logical():
            return "bool"
        case Comprehension(macro=macro):
            return _MACROS[macro]
        case ListLiteral():
            return "list"
        case MapLiteral():
            return "map"
        case TypeName():
            return "type"
        case Conditional(then=then, otherwise=otherwise):
            types = {type_of(then, schema), type_of(otherwise, schema)}
            return types.pop() if len(types) == 1 else None
        case Call(function=("+" | "-" | "*" | "/"), arguments=(first, *_)):
            operand = type_of(first, schema)
            return operand if operand in _CLOSED else None
        case Call(function=function):
            return _FUNCTIONS.get(function)
    return _type_of_field(node, schema)


def child_schema(schema: JsonObject, name: str) -> JsonObject | None:
    """What a schema says of one field; None when there is no such field."""
    child = schema.get("properties", {}).get(name)
    if child is None and "additionalProperties" in schema:
        child = schema["additionalProperties"]
    if child is None and (
        schema.get("x-kubernetes-preserve-unknown-fields") or not schema.get("properties") or name in _IMPLIED
    ):
        child = {}
    return child if child is None or isinstance(child, dict) else {}


def _type_of_field(node: Node, schema: JsonObject) -> str | None:
    path, base, optional = chain(node)
    if optional or not isinstance(base, Name) or base.bound:
        return None
    place: JsonObject | None = schema
    for name in path:
        place = child_schema(place, name) if place is not None else None
    if place is None:
        return None
    declared = place.get("type", "")
    if declared == "string":
        return _FORMATS.get(place.get("format", ""), "string")
    return _SCHEMA_TYPES.get(declared)
