"""Order the elements of a merged list, and match them with one another.

Scalars are known by themselves, objects by the value of their merge key; equal is what is of one type and of one value.
A client wants its own elements in its order. Those that only the server has keep the order that they had there, and
come before the first of the client's that they stood before.
"""

from __future__ import annotations

from typing import Any, Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import PatchError

__all__ = ["element_type", "failure", "find", "go_name", "go_text", "merge_key_of", "ordered", "require_key"]

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


def find(items: list[Any], wanted: Any, key: str) -> int:
    """The place of an element, counted from one; zero when it is not there."""
    for place, item in enumerate(items, 1):
        if _same(_identity(item, key), _identity(wanted, key)):
            return place
    return 0


def ordered(merged: list[Any], *, server: list[Any], wanted: list[Any], key: str) -> list[Any]:
    """The elements of `merged` in the wanted order, and those only the server knows at their old relative place."""
    require_key([*merged, *wanted, *server], key)
    mine = sorted((item for item in merged if find(wanted, item, key)), key=lambda item: find(wanted, item, key))
    others = sorted((item for item in merged if not find(wanted, item, key)), key=lambda item: find(server, item, key))
    result: list[Any] = []
    for item in mine:
        place = find(server, item, key)
        while others and 0 < find(server, others[0], key) < place:
            result.append(others.pop(0))
        result.append(item)
    return result + others


def _identity(item: Any, key: str) -> Any:
    return item.get(key) if key and item.__class__ is dict else item


def _same(left: Any, right: Any) -> bool:
    return left.__class__ is right.__class__ and bool(left == right)


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
