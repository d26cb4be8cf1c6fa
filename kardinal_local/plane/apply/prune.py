"""Remove the fields that a manager has stopped applying.

An apply removes what its manager applied the last time, does not apply now, and does not share with another manager.
What a field set does not say is whether a container is owned for itself or only on the way to its content, so declared
fields on the way count as owned. A container that loses all its content becomes null: for most fields that is as good
as absent, and where the schema wants the field, the apply is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kardinal_local.plane.apply.elements import element
from kardinal_local.plane.apply.fieldsets import FieldSet, difference, intersection, is_member, union
from kardinal_local.plane.apply.typed import field_set
from kardinal_local.plane.apply.types import Form, Type
from kardinal_local.plane.documents import JsonObject

__all__ = ["prune"]


def prune(merged: JsonObject, declared: Type, *, last: FieldSet, managed: Iterable[FieldSet]) -> JsonObject:
    """The merged object without what was in `last` and is in none of `managed`, which holds the new claim too."""
    dropped = _with_containers(last, declared)
    content = _with_containers(field_set(merged, declared), declared)
    left = _with_containers(field_set(_remove(merged, dropped, declared), declared), declared)
    for fields in managed:
        left = union(left, _with_containers(fields, declared))
    # Without what has no claim now; what the manager never claimed comes back with its containers.
    kept = field_set(_remove(merged, difference(content, left), declared), declared)
    gone = intersection(difference(content, _with_containers(kept, declared)), dropped)
    result: JsonObject = _remove(merged, gone, declared) if gone else merged
    return result


def _remove(value: Any, fields: FieldSet, declared: Type) -> Any:
    """The value without the given fields; None when nothing is left of it."""
    match declared.form(value):
        case Form.SCALAR:
            return value
        case Form.MAP:
            return _map_without(value, fields, declared) if value and not declared.atomic_map else None
    return _list_without(value, fields, declared) if value and not declared.atomic_list else None


def _map_without(value: JsonObject, fields: FieldSet, declared: Type) -> JsonObject | None:
    result: JsonObject = {}
    for key, item in value.items():
        node = fields.get(f"f:{key}")
        if node is None:
            result[key] = item
        elif not is_member(node):
            result[key] = _remove(item, node, declared.child(key))
    return result or None


def _list_without(value: list[Any], fields: FieldSet, declared: Type) -> list[Any] | None:
    result = []
    for item in value:
        node = fields.get(element(item, declared))
        if node is None:
            result.append(item)
        elif not is_member(node):
            result.append(_remove(item, node, declared.elements))
    return result or None


def _with_containers(fields: FieldSet, declared: Type) -> FieldSet:
    """The set with every declared field on the way to a member: who owns a part has a say in the whole."""
    result: FieldSet = {}
    for step, node in fields.items():
        if not node:
            result[step] = node
            continue
        if step[0] == "f":
            name = step[2:]
            inner = _with_containers(node, declared.child(name))
            result[step] = {".": {}, **inner} if name in declared.fields else inner
        else:
            result[step] = _with_containers(node, declared.elements)
    return result
