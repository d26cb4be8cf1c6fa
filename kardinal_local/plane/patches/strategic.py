"""Apply a strategic merge patch: a merge patch that knows which lists are keyed.

The schema says so: `x-kubernetes-patch-strategy: merge` makes a list of objects merge by its
`x-kubernetes-patch-merge-key` and a list of scalars a union. Clients that compute such patches (`kubectl apply`,
`edit`, `label`, `set image`) also send directives, which are keys starting with `$`:

    $patch: replace | delete                of the object they stand in, or as an element of a merged list
    $retainKeys: [..]                       drop the keys that are not named (a union switched to another member)
    $deleteFromPrimitiveList/FIELD: [..]    remove scalars from a merged list
    $setElementOrder/FIELD: [..]            the order the client wants in a merged list

The traps: elements only the server has keep their place relative to their neighbours, so an injected sidecar neither
jumps to the end nor gets lost (`order`); and where there is nothing yet to merge with, a directive goes unread, with
what it stands in.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from kardinal_local.plane.builtin import with_metadata
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import PatchError
from kardinal_local.plane.patches.order import (
    element_type,
    failure,
    go_name,
    go_text,
    identity,
    merge_key_of,
    ordered,
    places,
    require_key,
)

__all__ = ["go_text", "strategic_merge"]

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE: Final = "$deleteFromPrimitiveList"
_ORDER: Final = "$setElementOrder"
_GO_NAMES: Final = {list: "array", str: "string", bool: "bool", type(None): "null"}


def strategic_merge(obj: JsonObject, patch: JsonObject, *, schema: JsonObject | None) -> JsonObject:
    """The object with the patch merged in; neither argument is changed."""
    if not isinstance(patch, dict):
        found = _GO_NAMES.get(type(patch), "number")
        message = f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        raise PatchError(400, "BadRequest", message)
    return _merge_object(obj, patch, with_metadata(schema))


def _merge_object(target: JsonObject, patch: JsonObject, schema: JsonObject) -> JsonObject:
    if _PATCH in patch:
        return _directed(patch)
    merged, rest = dict(target), dict(patch)
    if _RETAIN in rest:
        kept = _retained(rest)
        merged = {key: value for key, value in merged.items() if key in kept}
    for key in patch:
        if key.startswith(_ORDER):
            _merge_ordered(merged, rest, key, schema)
    for key, value in rest.items():
        deletes = key.startswith(_DELETE)
        field = _field(key, _DELETE) if deletes else key
        if value is None:
            merged.pop(field, None)
        elif field in merged and merged[field].__class__ is value.__class__:
            merged[field] = _merge_value(merged[field], value, _child(schema, field), deletes=deletes)
        elif not deletes:
            _set_new(merged, field, value)
    return merged


def _directed(patch: JsonObject) -> JsonObject:
    directive = patch[_PATCH]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    raise failure(f"unknown patch type: {directive} in map: {go_text(patch)}")


def _set_new(merged: JsonObject, field: str, value: Any) -> None:
    if _is_directed(value):
        merged.pop(field, None)
    else:
        merged[field] = _without_directives(_without_nulls(value))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _without_directives(value: Any) -> Any:
    """What a patch says of a field that is not there yet: what carries a directive is left out."""
    if isinstance(value, dict):
        return {key: _without_directives(item) for key, item in value.items() if not _is_directed(item)}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _is_directed(item)]
    return value


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _merge_value(target: Any, value: Any, schema: JsonObject, *, deletes: bool) -> Any:
    if isinstance(value, dict) and isinstance(target, dict) and "replace" not in _strategies(schema):
        return _merge_object(target, value, schema)
    if isinstance(value, list) and isinstance(target, list) and (deletes or "merge" in _strategies(schema)):
        return _merge_list(target, value, schema, deletes=deletes)
    return value


def _merge_list(target: list[Any], patch: list[Any], schema: JsonObject, *, deletes: bool) -> list[Any]:
    if not target and not patch:
        return target
    key = merge_key_of(schema)
    if element_type(target, patch) is not dict:
        if deletes:
            gone = places(patch, "")
            return [item for item in target if identity(item, "") not in gone]
        union: dict[Hashable, Any] = {}
        for item in (*target, *patch):
            union.setdefault(identity(item, ""), item)
        return ordered(list(union.values()), server=target, wanted=patch, key="")
    if not key:
        raise failure("cannot merge lists without merge key for struct")
    target, patch = _without_special(target, patch, key)
    merged, known = list(target), places(target, key)
    for item in patch:
        require_key([item], key)
        place = known.setdefault(identity(item, key), len(merged))
        if place < len(merged):
            merged[place] = _merge_object(merged[place], item, schema.get("items", {}))
        else:
            merged.append(item)
    return ordered(merged, server=target, wanted=patch, key=key)


def _without_special(target: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Both lists after those elements of the patch that say what to do and not what to be."""
    rest, gone, replaced = [], set(), False
    for item in patch:
        if _PATCH not in item:
            rest.append(item)
            continue
        match item[_PATCH]:
            case "delete":
                require_key([item], key)
                gone.add(identity(item, key))
            case "replace":
                replaced = True
            case "merge":
                raise failure("merging lists cannot yet be specified in the patch")
            case directive:
                raise failure(f"unknown patch type: {directive} in map: {go_text(item)}")
    return ([] if replaced else [one for one in target if identity(one, key) not in gone]), rest


def _merge_ordered(merged: JsonObject, rest: JsonObject, directive: str, schema: JsonObject) -> None:
    """Merge the list that a client wants in an order, and take both out of what is left to do."""
    wanted, field = rest.pop(directive), _field(directive, _ORDER)
    child = _child(schema, field)
    server, patch = merged.get(field), rest.get(field)
    for value, given in ((wanted, True), (server, field in merged), (patch, field in rest)):
        if given and not isinstance(value, list):
            raise failure(f"expected a []interface {{}}, but received a {go_name(value)}")
    key = merge_key_of(child)
    if patch and wanted:
        _check_order(patch, wanted, key)
    if server is None and patch is None:
        return
    rest.pop(field, None)
    if patch is None:
        both = server
    elif server is None:
        both = _without_directives(patch)
    else:
        both = _merge_value(server, patch, child, deletes=False)
    element_type(server or [], patch or [], needed=True)
    merged[field] = ordered(both or [], server=server or [], wanted=wanted, key=key)


def _check_order(patch: list[Any], wanted: list[Any], key: str) -> None:
    """What is patched must stand in the wanted order, among what is not."""
    places = iter(wanted)
    for item in patch:
        if _is_directed(item):
            continue
        for place in places:
            require_key([item, place], key)
            if identity(place, key) == identity(item, key):
                break
        else:
            raise failure(
                f"The order in patch list:\n{go_text(patch)}\n doesn't match $setElementOrder list:\n"
                f"{go_text(wanted)}\n"
            )


def _field(directive: str, prefix: str) -> str:
    """The field that a directive is about."""
    found, slash, field = directive.partition("/")
    if found != prefix or not slash:
        what = "primitive list" if prefix == _DELETE else "setElementOrder list"
        raise PatchError(400, "BadRequest", f"invalid patch format of {what}")
    return field


def _child(schema: JsonObject, key: str) -> JsonObject:
    found = schema.get("properties", {}).get(key)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else {}


def _strategies(schema: JsonObject) -> list[str]:
    return str(schema.get("x-kubernetes-patch-strategy", "")).split(",")


def _retained(rest: JsonObject) -> set[str]:
    """The keys that a patch keeps, which must hold those that it sets."""
    named = rest.pop(_RETAIN)
    wanted = {key for key, value in rest.items() if value is not None and not key.startswith((_DELETE, _ORDER))}
    if not isinstance(named, list) or not wanted <= set(map(str, named)):
        raise PatchError(400, "BadRequest", "invalid patch format of retainKeys")
    return set(map(str, named))
