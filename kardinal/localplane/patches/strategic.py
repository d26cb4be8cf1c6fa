"""Strategic merge patch: a merge patch that knows which lists are really maps.

The schema says so: `x-kubernetes-patch-strategy: merge` makes a list of objects merge by its
`x-kubernetes-patch-merge-key` and a list of scalars a union. Clients that compute such patches (`kubectl apply`,
`edit`, `label`, `set image`) also send directives, which are keys starting with `$`:

    $patch: replace | delete | merge        of the object they stand in, or as an element of a merged list
    $retainKeys: [..]                       drop the keys that are not named (a union switched to another member)
    $deleteFromPrimitiveList/FIELD: [..]    remove scalars from a merged list
    $setElementOrder/FIELD: [..]            the order the client wants in a merged list

The trap is the order: elements only the server has keep their place relative to their neighbours, so an injected
sidecar neither jumps to the end nor gets lost. Design: local-plane.md 2.3 (core kinds only, 415 for custom resources).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from kardinal.localplane.builtin import with_metadata
from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import PatchError

__all__ = ["go_text", "strategic_merge"]

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_GO_NAMES = {list: "array", str: "string", bool: "bool", type(None): "null"}


def strategic_merge(obj: JsonObject, patch: JsonObject, *, schema: JsonObject | None) -> JsonObject:
    """The object with the patch merged in; neither argument is changed."""
    if not isinstance(patch, dict):
        found = _GO_NAMES.get(type(patch), "number")
        message = f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        raise PatchError(400, "BadRequest", message)
    return _merge_object(obj, patch, with_metadata(schema))


def _merge_object(target: JsonObject, patch: JsonObject, schema: JsonObject) -> JsonObject:
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise PatchError(500, "", f"unknown patch type: {directive} in map: {go_text(patch)}")
    merged = dict(target)
    if _RETAIN in patch:
        kept = _retained(patch)
        merged = {key: value for key, value in merged.items() if key in kept}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        live = merged.get(key)
        if value is None or (live is None and _is_directed(value)):
            merged.pop(key, None)
            continue
        merged[key] = _merge_value(live, value, _child(schema, key), order=patch.get(_ORDER + key))
    for key, value in patch.items():
        field = key.removeprefix(_DELETE)
        if field != key and isinstance(merged.get(field), list):
            gone = value if isinstance(value, list) else []
            merged[field] = [item for item in merged[field] if item not in gone]
        field = key.removeprefix(_ORDER)
        if field != key and field not in patch and isinstance(merged.get(field), list):
            merged[field] = _ordered(merged[field], merged[field], value, _merge_key(_child(schema, field)))
    return merged


def _without_directives(value: Any) -> Any:
    """What a patch says of a field that is not there yet: what carries a directive is left out."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if item is not None and not _is_directed(item)}
        return {key: _without_directives(item) for key, item in kept.items()}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _is_directed(item)]
    return value


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _as_it_is(value: Any) -> Any:
    """A new element of a list is taken unread: to a type a directive is an unknown field."""
    if isinstance(value, dict):
        return {key: _as_it_is(item) for key, item in value.items() if not key.startswith("$")}
    return [_as_it_is(item) for item in value] if isinstance(value, list) else value


def _merge_value(target: Any, value: Any, schema: JsonObject, *, order: Any) -> Any:
    if target is None:
        return _without_directives(value)
    if isinstance(value, dict):
        return _merge_object(target if isinstance(target, dict) else {}, value, schema)
    if isinstance(value, list) and "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
        return _merge_list(target if isinstance(target, list) else [], value, schema, order=order)
    return value


def _merge_list(target: list[Any], patch: list[Any], schema: JsonObject, *, order: Any) -> list[Any]:
    key = _merge_key(schema)
    wanted = patch if order is None else order
    if isinstance(order, list):
        _check_order(patch, order, key)
    if key is None:
        return _ordered([*target, *(item for item in patch if item not in target)], target, wanted, None)
    items = schema.get("items", {})
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and _PATCH in item)]
    by_key = {_identity(item, key): item for item in target}
    for item in patch:
        identity = _identity(item, key)
        if item.get(_PATCH) == "delete":
            by_key.pop(identity, None)
        else:
            live = by_key.get(identity)
            by_key[identity] = _as_it_is(item) if live is None else _merge_object(live, item, items)
    return _ordered(list(by_key.values()), target, wanted, key)


def _ordered(merged: list[Any], server: list[Any], order: Any, key: str | None) -> list[Any]:
    """The named elements in the client's order, with those only the server knows at their old relative place."""
    if not isinstance(order, list):
        found = "map[string]interface {}" if isinstance(order, dict) else _GO_NAMES.get(type(order), "int64")
        raise PatchError(500, "", f"expected a []interface {{}}, but received a {found}")
    rank = _ranks(order, key)
    place = _ranks(server, key)
    named = sorted(
        (item for item in merged if _identity(item, key) in rank), key=lambda item: rank[_identity(item, key)]
    )
    others = [item for item in merged if _identity(item, key) not in rank]
    result: list[Any] = []
    for item in named:
        position = place.get(_identity(item, key))
        while others and position is not None and place.get(_identity(others[0], key), len(server)) < position:
            result.append(others.pop(0))
        result.append(item)
    return result + others


def _ranks(items: list[Any], key: str | None) -> dict[Hashable, int]:
    return {_identity(item, key): index for index, item in enumerate(items) if not _is_directive(item, key)}


def _is_directive(item: Any, key: str | None) -> bool:
    return isinstance(item, dict) and _PATCH in item and key not in item


def _identity(item: Any, key: str | None) -> Hashable:
    if key is None:
        return repr(item)
    if not isinstance(item, dict) or key not in item:
        raise PatchError(500, "", f"map: {go_text(item)} does not contain declared merge key: {key}")
    return repr(item[key])


def _merge_key(schema: JsonObject) -> str | None:
    key = schema.get("x-kubernetes-patch-merge-key")
    return key if isinstance(key, str) else None


def _child(schema: JsonObject, key: str) -> JsonObject:
    found = schema.get("properties", {}).get(key)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else {}


def _retained(patch: JsonObject) -> set[str]:
    """The keys that a patch keeps, which must hold those that it sets."""
    named = patch[_RETAIN]
    wanted = {key for key, value in patch.items() if value is not None and not key.startswith("$")}
    if not isinstance(named, list) or not wanted <= set(map(str, named)):
        raise PatchError(400, "BadRequest", "invalid patch format of retainKeys")
    return set(map(str, named))


def _check_order(patch: list[Any], order: list[Any], key: str | None) -> None:
    """What is patched must stand in the wanted order, among what is not."""
    patched = [item for item in patch if not (isinstance(item, dict) and _PATCH in item)]
    places = iter([_identity(item, key) for item in order])
    if not all(_identity(item, key) in places for item in patched):
        message = (
            f"The order in patch list:\n{go_text(patch)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
        )
        raise PatchError(500, "", message)


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
