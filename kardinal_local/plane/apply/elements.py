"""Identify the elements of a list: by the values of their keys, or by themselves in a set.

The name of an element is its step in a field set, in the spelling of the real server.
"""

from __future__ import annotations

from typing import Any

import orjson

from kardinal_local.plane.apply.types import Type
from kardinal_local.plane.documents import JsonObject

__all__ = ["NoElement", "element"]


class NoElement(ValueError):
    """A value cannot be an element of this list."""


def element(item: Any, owner: Type) -> str:
    """The step to an element of a list of type `owner`."""
    if owner.keys:
        return "k:" + _written(_identity(item, owner))
    found = item.__class__
    if found is dict:
        raise NoElement("associative list without keys has an element that's a map type")
    if found is list:
        raise NoElement("not supported: associative list with lists as elements")
    if item is None:
        raise NoElement("associative list without keys has an element that's an explicit null")
    return "v:" + _written(item)


def _identity(item: Any, owner: Type) -> JsonObject:
    if item is None:
        raise NoElement("associative list with keys may not have a null element")
    if item.__class__ is not dict:
        raise NoElement("associative list with keys may not have non-map elements")
    identity = {}
    for key in owner.keys:
        if key in item:
            identity[key] = item[key]
        elif key in owner.key_defaults:
            identity[key] = owner.key_defaults[key]
    if not identity:
        names = " ".join(orjson.dumps(key).decode() for key in owner.keys)
        raise NoElement(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return identity


def _written(value: Any) -> str:
    """JSON as Go writes it, with what is special in HTML escaped."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    if "<" in text or ">" in text or "&" in text:
        text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return text
