"""Apply a merge patch (RFC 7386), as the real server does.

What a caller can rely on: arguments are never changed, because the live object is shared with the store and its
readers; the result may share subtrees with both. Null removes a key, objects merge, everything else replaces. What
replaces something else than an object loses its nulls too, also inside lists.
"""

from __future__ import annotations

from typing import Any

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import PatchError

__all__ = ["merge_patch", "unreadable"]


def merge_patch(obj: JsonObject, patch: Any) -> JsonObject:
    if patch is None:
        raise PatchError(400, "BadRequest", "Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise unreadable(patch, "value of type map[string]interface {}")
    return _merge(obj, patch)


def unreadable(value: Any, wanted: str) -> PatchError:
    """A patch that has another form than it should."""
    return PatchError(
        400, "BadRequest", f"error decoding patch: json: cannot unmarshal {_name(value)} into Go {wanted}"
    )


def _name(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
    return "object" if isinstance(value, dict) else "array"


def _merge(target: JsonObject, patch: JsonObject) -> JsonObject:
    merged = dict(target)
    for key, value in patch.items():
        live = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(live, dict):
            merged[key] = _merge(live, value) if isinstance(value, dict) else value
        else:
            merged[key] = _without_nulls(value)
    return merged


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
