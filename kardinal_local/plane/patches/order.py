"""Order the elements of a merged list, and match them with one another, in a time that grows with their number.

Scalars are known by themselves, objects by the value of their merge key; equal is what is of one type and of one value.
A client wants its own elements in its order. Those that only the server has keep the order that they had there, and
come before the first of the client's that they stood before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any, Final

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import PatchError

__all__ = [
    "element_type",
    "failure",
    "go_name",
    "go_text",
    "identity",
    "merge_key_of",
    "ordered",
    "places",
    "require_key",
]

_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "%!s(<nil>)",
}


def failure(message: str) -> PatchError:
    """What the real server blames itself for, although the patch is to blame."""
    return PatchError(500, "", message)


def merge_key_of(schema: JsonObject) -> str:
    return str(schema.get("x-kubernetes-patch-merge-key") or "")


def element_type(*lists: list[Any], needed: bool = False) -> type | None:
    """The type that all elements have."""
    items = [item for one in lists for item in one]
    if not items:
        if needed:
            raise failure("no elements in any of the given slices")
        return None
    found: type = items[0].__class__
    if found is list:
        raise PatchError(422, "", "lists of lists are not supported")
    if any(item.__class__ is not found for item in items):
        raise failure(f"list element types are not identical: {go_text(list(lists))}")
    return found


def require_key(items: list[Any], key: str) -> None:
    """Refuse what a merge key does not tell apart from others."""
    for item in items if key else ():
        if item.__class__ is not dict:
            raise failure(f"expected a map[string]interface {{}}, but received a {go_name(item)}")
        if key not in item:
            raise failure(f"map: {go_text(item)} does not contain declared merge key: {key}")


def places(items: list[Any], key: str) -> dict[Hashable, int]:
    """The first place of every element, by its identity."""
    found: dict[Hashable, int] = {}
    for place, item in enumerate(items):
        found.setdefault(identity(item, key), place)
    return found


def identity(item: Any, key: str) -> Hashable:
    """What an element is known by: its type and value, or those of its merge key."""
    value = item.get(key) if key and item.__class__ is dict else item
    if value.__class__ in (dict, list):
        return value.__class__, orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return value.__class__, value


def ordered(merged: list[Any], *, server: list[Any], wanted: list[Any], key: str) -> list[Any]:
    """The elements of `merged` in the wanted order, and those only the server knows at their old relative place."""
    require_key([*merged, *wanted, *server], key)
    in_order, before = places(wanted, key), places(server, key)
    named = [(identity(item, key), item) for item in merged]
    mine = sorted((pair for pair in named if pair[0] in in_order), key=lambda pair: in_order[pair[0]])
    rest = (pair for pair in named if pair[0] not in in_order)
    others = deque(sorted(rest, key=lambda pair: before.get(pair[0], -1)))
    result: list[Any] = []
    for name, item in mine:
        place = before.get(name, -1)
        while others and -1 < before.get(others[0][0], -1) < place:
            result.append(others.popleft()[1])
        result.append(item)
    return result + [item for _, item in others]


def go_name(value: Any) -> str:
    """The Go type of a JSON value."""
    return _GO_TYPES[value.__class__]


def go_text(value: Any) -> str:
    """A patch as the real server shows it in a refusal: printed by Go, with sorted keys."""
    match value:
        case dict():
            return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(go_text, value))}]"
        case None:
            return "<nil>"
        case bool():
            return str(value).lower()
    return str(value)
