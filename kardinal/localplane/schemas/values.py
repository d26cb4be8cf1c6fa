"""Values as CEL rules see them.

A string that its schema calls a date-time or a duration is a timestamp or a duration to an expression, as on the real
server. Most schemas have none below their rules and their values are handed over untouched; the others get a copy
with those strings read. A string that cannot be read stays one: its format has been judged before.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from kardinal.api.duration import parse_duration
from kardinal.localplane.documents import JsonObject

__all__ = ["View", "view"]

View = Callable[[Any], Any]


def view(schema: JsonObject) -> View | None:
    """How a value of this schema is shown to an expression; None when it is shown as it is."""
    if schema.get("type") == "string":
        return _READ.get(schema.get("format", ""))
    fields = {name: shown for name, child in schema.get("properties", {}).items() if (shown := view(child)) is not None}
    extra = schema.get("additionalProperties")
    values = view(extra) if isinstance(extra, dict) else None
    if fields or values is not None:
        return lambda value: _object(value, fields, values)
    items = view(schema["items"]) if isinstance(schema.get("items"), dict) else None
    if items is not None:
        return lambda value: [items(item) for item in value] if isinstance(value, list) else value
    return None


def _object(value: Any, fields: dict[str, View], values: View | None) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: shown(item) if (shown := fields.get(key, values)) is not None else item for key, item in value.items()}


def _moment(value: Any) -> Any:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value


def _duration(value: Any) -> Any:
    try:
        return parse_duration(value)
    except (TypeError, ValueError):
        return value


_READ: dict[str, View] = {"date": _moment, "date-time": _moment, "duration": _duration}
