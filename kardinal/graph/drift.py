"""Drift: compare a live object with what was applied to it.

An API server adds to what it is given: defaults, fields of other writers, the whole status. Only the fields that were
applied are compared. A server may also write a value its own way or drop a field it does not know; such a difference
comes back with every apply, so what an apply left behind is remembered and no longer counts as drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardinal.objects import JsonObject

__all__ = ["applied_part", "covers"]


def covers(live: JsonObject, desired: JsonObject) -> bool:
    """Return whether every applied field stands in `live` with its value."""
    return all(_same(live.get(field), value) for field, value in _compared(desired).items())


def applied_part(live: JsonObject, desired: JsonObject) -> object:
    """Return what `live` says in the fields that were applied."""
    return {field: _part(live.get(field), value) for field, value in _compared(desired).items()}


def _compared(desired: JsonObject) -> JsonObject:
    """Owner references are a merged list, and the rest of metadata cannot change."""
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
