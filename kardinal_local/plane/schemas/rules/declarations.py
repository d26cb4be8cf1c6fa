"""Declare what an expression sees of a schema: the type of `self`, and its values in the form of that type.

Only what is described is visible: a field whose content is preserved without a schema does not exist for a rule, and a
list or map of such values does not exist as a whole. Names that are no identifiers are escaped (`__dash__`,
`__namespace__`). A number is a double even when it is written as 1, a date-time is a moment, and int-or-string is told
apart by the rule itself. Most schemas need none of that below their rules, and their values are handed over untouched.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any, Final

from kardinal.cel import Fault
from kardinal.cel.values import parse_duration
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.schemas.keywords import EMBEDDED, INT_OR_STRING
from kardinal_local.plane.schemas.rules.celtypes import BOOL, DYN, INT, STRING, Type, list_of, map_of

__all__ = ["View", "declared_type", "escaped", "view"]

View = Callable[[Any], Any]

_RESERVED: Final = frozenset(
    [
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    ]
)
_SYMBOLS: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_SYMBOL: Final = re.compile("|".join(map(re.escape, _SYMBOLS)))
_SCALARS: Final = {"boolean": BOOL, "number": Type("double"), "integer": INT}
_TEXTS: Final = {
    "byte": Type("bytes"),
    "duration": Type("duration"),
    "date": Type("timestamp"),
    "date-time": Type("timestamp"),
}
_IDENTITY: Final[JsonObject] = {
    "kind": {"type": "string"},
    "apiVersion": {"type": "string"},
    "metadata": {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}},
}


def escaped(name: str) -> str | None:
    """A field name as an identifier; None for a name that cannot be one."""
    if name in _RESERVED:
        return f"__{name}__"
    text = _SYMBOL.sub(lambda match: _SYMBOLS[match[0]], name)
    return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) else None


def declared_type(schema: JsonObject, *, root: bool = False, at: str = "selfType") -> Type | None:
    """The type of a value of this schema; None when a rule cannot see it."""
    if schema.get(INT_OR_STRING):
        return DYN
    match schema.get("type"):
        case "array":
            items = schema.get("items")
            item = declared_type(items, root=bool(items.get(EMBEDDED)), at=f"{at}.@idx") if items else None
            return None if item is None else list_of(item)
        case "object":
            return _object_type(schema, root=root, at=at)
        case "string":
            return _TEXTS.get(schema.get("format") or "", STRING)
        case kind:
            return _SCALARS.get(kind or "")


def _object_type(schema: JsonObject, *, root: bool, at: str) -> Type | None:
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        value = declared_type(extra, root=bool(extra.get(EMBEDDED)), at=f"{at}.@elem")
        return None if value is None else map_of(STRING, value)
    fields: dict[str, Type] = {}
    for name, child in _fields(schema, root=root).items():
        identifier = escaped(name)
        kind = declared_type(child, root=bool(child.get(EMBEDDED)), at=f"{at}.{name}")
        if identifier is not None and kind is not None:
            fields[identifier] = kind
    return Type(at, fields=fields)


def _fields(schema: JsonObject, *, root: bool) -> Mapping[str, JsonObject]:
    fields: JsonObject = schema.get("properties") or {}
    return {**fields, **_IDENTITY} if root else fields


def view(schema: JsonObject) -> View | None:
    """How a value of this schema is shown to an expression; None when it is shown as it is."""
    if schema.get(INT_OR_STRING):
        return None
    match schema.get("type"):
        case "string":
            return _READ.get(schema.get("format") or "")
        case "number":
            return _double
        case "array" if isinstance(schema.get("items"), dict):
            items = view(schema["items"])
            return None if items is None else lambda value: _list(value, items)
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            values = view(schema["additionalProperties"])
            return None if values is None else lambda value: _map(value, values)
        case "object":
            return _object_view(schema)
    return None


def _object_view(schema: JsonObject) -> View | None:
    shown: dict[str, tuple[str, View | None]] = {}
    for name, child in (schema.get("properties") or {}).items():
        identifier, read = escaped(name), view(child)
        if identifier is not None and (identifier != name or read is not None):
            shown[name] = (identifier, read)
    return (lambda value: _object(value, shown)) if shown else None


def _object(value: Any, shown: Mapping[str, tuple[str, View | None]]) -> Any:
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, item in value.items():
        name, read = shown.get(key, (key, None))
        result[name] = item if read is None else read(item)
        if key in _RESERVED:
            result[key] = result[name]
    return result


def _map(value: Any, read: View) -> Any:
    return {key: read(item) for key, item in value.items()} if isinstance(value, dict) else value


def _list(value: Any, read: View) -> Any:
    return [read(item) for item in value] if isinstance(value, list) else value


def _double(value: Any) -> Any:
    return float(value) if value.__class__ is int else value


def _moment(value: Any) -> Any:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _day(value: Any) -> Any:
    try:
        return datetime.combine(date.fromisoformat(value), time(), UTC)
    except (TypeError, ValueError):
        return value


def _span(value: Any) -> Any:
    try:
        return parse_duration(value)
    except (TypeError, Fault):
        return value


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return value


_READ: Final[dict[str, View]] = {"byte": _bytes, "date": _day, "date-time": _moment, "duration": _span}
