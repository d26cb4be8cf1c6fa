"""Compute JSON merge patches (RFC 7396) between two states of a document.

    difference({"a": 1, "b": {"c": 2}}, {"b": {"c": 3}})  ->  {"a": None, "b": {"c": 3}}

A document contains no null, because a patch removes what it sets to null. Lists are replaced as a whole.
"""

from __future__ import annotations

from typing import Any

__all__ = ["difference"]

Json = dict[str, Any]


def difference(old: Json, new: Json) -> Json:
    """Return the patch that makes `new` from `old`; it is empty if they are equal."""
    patch: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
            continue
        before = old[key]
        if isinstance(before, dict) and isinstance(value, dict):
            if inner := difference(before, value):
                patch[key] = inner
        elif before != value or isinstance(before, bool) != isinstance(value, bool):
            patch[key] = value
    return patch
