"""Compare a live object with what was applied to it, and name what was applied by a hash.

An API server adds fields to an applied object: defaults, fields of other writers, the whole status. Only the fields
that were applied are compared. A server may also change the notation of a value (`1000m` becomes `1`) or drop an
unknown field. Such a difference returns after every apply, so a controller remembers the object as the last apply
left it, and does not count that state as drift.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from kardinal.objects.resource_type import JsonObject

__all__ = ["applied_part", "content_hash", "covers"]


def content_hash(value: object) -> str:
    """Return a hash of a JSON value as twelve hex digits; the order of keys does not matter."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:12]


def covers(live: JsonObject, desired: JsonObject) -> bool:
    """Return whether `live` has every field of `desired` with the same value."""
    return all(_same(live.get(field), value) for field, value in _compared(desired).items())


def applied_part(live: JsonObject, desired: JsonObject) -> object:
    """Return the part of `live` that has the fields of `desired`."""
    return {field: _part(live.get(field), value) for field, value in _compared(desired).items()}


def _compared(desired: JsonObject) -> JsonObject:
    """Return the fields of `desired` that are compared.

    Owner references are left out because the server merges that list; the other fields of the identity cannot change.
    """
    metadata: Mapping[str, Any] = desired["metadata"]
    kept = {field: metadata[field] for field in ("labels", "annotations") if field in metadata}
    return {**desired, "metadata": kept}


def _same(live: object, desired: object) -> bool:
    if isinstance(desired, dict):
        if not isinstance(live, dict):
            return not desired and live is None
        return all(_same(live.get(key), value) for key, value in desired.items())
    if isinstance(desired, list):
        if not isinstance(live, list):
            return not desired and live is None
        return len(live) == len(desired) and all(map(_same, live, desired))
    return live == desired and isinstance(live, bool) is isinstance(desired, bool)


def _part(live: object, desired: object) -> object:
    if isinstance(live, dict) and isinstance(desired, dict):
        return {key: _part(live.get(key), value) for key, value in desired.items()}
    return live
