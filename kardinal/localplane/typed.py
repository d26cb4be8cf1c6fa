"""Objects seen through their schema: which parts are one value, which merge, and what differs between two of them.

To server-side apply an object is a tree whose leaves are owned. The schema says where leaves begin: a scalar, a list
without `x-kubernetes-list-type`, a map marked atomic. A keyed list (`map`) and a set have elements that are owned one
by one. Where no schema speaks, maps are granular and lists are atomic. The raw OpenAPI dictionaries are read directly:
a look-up costs no more than a compiled node would. Design: local-plane.md 2.3 (CRDs) and 5.2 (ssa).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import orjson

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.fieldsets import FieldSet, is_member

__all__ = [
    "Difference",
    "NotTyped",
    "compare",
    "field_set",
    "merge",
    "remove",
    "subtree",
    "tracked",
    "with_containers",
    "without_empty_metadata",
]

_ANY: JsonObject = {}
_IDENTITY = ("apiVersion", "kind", "metadata")
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_TYPE = frozenset({"apiVersion", "kind"})
_UNTRACKED = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


class NotTyped(ValueError):
    """A configuration has a field or an element that its schema does not know."""


@dataclass(slots=True)
class Difference:
    """What an update adds, changes and removes, as sets of fields."""

    added: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    removed: FieldSet = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


def tracked(obj: JsonObject) -> JsonObject:
    """The object without what nobody owns: its type, its identity and what the server alone sets."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in _UNTRACKED}
    return {key: value for key, value in obj.items() if key not in _TYPE} | {"metadata": metadata}


def without_empty_metadata(obj: JsonObject) -> JsonObject:
    """The object as it will be stored: metadata has no empty labels, finalizers or the like."""
    metadata = obj.get("metadata", {})
    if all(metadata.values()):
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if value not in ({}, [])}}


def field_set(value: JsonObject, schema: JsonObject, *, path: str = "") -> FieldSet:
    """The fields that an applied configuration speaks of; refuses what its schema does not know."""
    properties = schema.get("properties", _ANY)
    fields: FieldSet = {}
    for key, item in value.items():
        child = properties.get(key)
        if child is None:
            # An entry of a map belongs to whoever names it; a declared field is only the way to its content.
            fields[f"f:{key}"] = _with_self(_set_of(item, _entry(schema, key, path), f"{path}.{key}"))
            continue
        node = _set_of(item, child, f"{path}.{key}")
        if node is not None:
            fields[f"f:{key}"] = node
    return fields


def _set_of(value: Any, schema: JsonObject, path: str) -> FieldSet | None:
    """None for a keyed list without elements, and for what holds nothing else: naming it owns nothing."""
    if value.__class__ is dict:
        if not value or _is_atomic_map(schema):
            return {}
        return field_set(value, schema, path=path) or None
    if value.__class__ is not list or _is_atomic_list(schema):
        return {}
    fields: FieldSet = {}
    items = schema.get("items", _ANY)
    for index, item in enumerate(value):
        step = _element(item, schema, at=f"{path}: element {index}")
        if step in fields:
            raise NotTyped(f"{path}: duplicate entries for key {step[2:]}")
        fields[step] = _with_self(_set_of(item, items, f"{path}[{step[2:]}]"))
    return fields or None


def _with_self(node: FieldSet | None) -> FieldSet:
    return {".": {}, **node} if node else {}


def subtree(value: Any, schema: JsonObject) -> FieldSet:
    """Everything from here down, containers included: what a write that adds the value takes."""
    if not value or not _is_granular(value, schema):
        return {}
    return _with_self({step: subtree(item, child) for step, (item, child) in _steps(value, schema).items()})


def _content(node: FieldSet) -> FieldSet:
    """What is inside, without the container."""
    return {step: child for step, child in node.items() if step != "."}


def compare(old: Any, new: Any, schema: JsonObject) -> Difference:
    """The difference between two states of one object, or of one granular part of it."""
    difference = Difference()
    if old is new:
        return difference
    before, after = _steps(old, schema), _steps(new, schema)
    for step, (item, child) in after.items():
        if step not in before:
            difference.added[step] = subtree(item, child)
            continue
        previous = before[step][0]
        if _same(previous, item):
            continue
        if previous.__class__ is not item.__class__ or not _is_granular(item, child):
            difference.modified[step] = {}
            if content := _content(subtree(item, child)):
                difference.added[step] = content
            if content := _content(subtree(previous, child)):
                difference.removed[step] = content
            continue
        inner = compare(previous, item, child)
        if inner.added:
            difference.added[step] = inner.added
        if inner.modified:
            difference.modified[step] = inner.modified
        if inner.removed:
            difference.removed[step] = inner.removed
    for step, (item, child) in before.items():
        if step not in after:
            difference.removed[step] = subtree(item, child)
    return difference


def merge(live: Any, applied: Any, schema: JsonObject) -> Any:
    """The live value with the applied one laid over it; elements only the live list has keep their place."""
    if _same(live, applied):
        return live
    if applied.__class__ is not live.__class__ or not _is_granular(applied, schema):
        return applied
    if applied.__class__ is dict:
        merged = dict(live)
        for key, item in applied.items():
            merged[key] = merge(live[key], item, _child(schema, key)) if key in live else item
        return merged
    ours, theirs = _steps(live, schema), _steps(applied, schema)
    waiting = deque(ours)
    shared = deque(step for step in theirs if step in ours)
    result: list[Any] = []
    for step, (item, child) in theirs.items():
        while waiting and (not shared or waiting[0] != shared[0]):
            name = waiting.popleft()
            if name not in theirs:
                result.append(ours[name][0])
        if step not in ours:
            result.append(item)
            continue
        result.append(merge(ours[step][0], item, child))
        shared.popleft()
        if waiting:
            waiting.popleft()
    return result + [ours[name][0] for name in waiting if name not in theirs]


def with_containers(fields: FieldSet, schema: JsonObject) -> FieldSet:
    """The set with every declared field on the way to a member: who owns a part has a say in the whole."""
    result: FieldSet = {}
    properties = schema.get("properties", _ANY)
    for step, node in fields.items():
        if not node:
            result[step] = node
            continue
        kind, name = step[:2], step[2:]
        child = _child(schema, name) if kind == "f:" else schema.get("items", _ANY)
        inner = with_containers(node, child)
        result[step] = {".": {}, **inner} if kind == "f:" and name in properties else inner
    return result


def remove(value: Any, fields: FieldSet, schema: JsonObject) -> Any:
    """The value without the given fields, whatever is in them; what loses all its content stays, empty."""
    if value.__class__ is list:
        return [
            remove(item, fields[step], child) if step in fields else item
            for step, (item, child) in _steps(value, schema).items()
            if step not in fields or not is_member(fields[step])
        ]
    if value.__class__ is not dict:
        return value
    result: JsonObject = {}
    for key, item in value.items():
        node = fields.get(f"f:{key}")
        if node is None:
            result[key] = item
        elif not is_member(node):
            child = _child(schema, key)
            result[key] = remove(item, node, child) if _is_granular(item, child) else item
    return result


def _same(left: Any, right: Any) -> bool:
    """Equality as JSON has it: to Python, `True` is `1`, also deep inside."""
    if left is right:
        return True
    if left.__class__ is not right.__class__ or left != right:
        return False
    if left.__class__ is not dict and left.__class__ is not list:
        return True
    sort = orjson.OPT_SORT_KEYS
    return orjson.dumps(left, option=sort) == orjson.dumps(right, option=sort)


def _steps(value: Any, schema: JsonObject) -> dict[str, tuple[Any, JsonObject]]:
    """The children of a granular value by their step, each with its schema."""
    if value.__class__ is dict:
        return {f"f:{key}": (item, _child(schema, key)) for key, item in value.items()}
    items = schema.get("items", _ANY)
    return {_element(item, schema): (item, items) for item in value}


def _is_granular(value: Any, schema: JsonObject) -> bool:
    if value.__class__ is dict:
        return not _is_atomic_map(schema)
    return value.__class__ is list and not _is_atomic_list(schema)


def _is_atomic_map(schema: JsonObject) -> bool:
    return bool(schema.get("x-kubernetes-map-type") == "atomic")


def _is_atomic_list(schema: JsonObject) -> bool:
    return bool(schema.get("x-kubernetes-list-type", "atomic") == "atomic")


def _child(schema: JsonObject, key: str) -> JsonObject:
    child = schema.get("properties", _ANY).get(key)
    if child is None:
        child = schema.get("additionalProperties")
    return child if child.__class__ is dict else _ANY


def _entry(schema: JsonObject, key: str, path: str) -> JsonObject:
    """The schema of a field that is not declared, where such fields are allowed."""
    extra = schema.get("additionalProperties")
    if extra is not None:
        return extra if isinstance(extra, dict) else _ANY
    if schema.get(_PRESERVE) or "properties" not in schema:
        return _ANY
    if schema.get("x-kubernetes-embedded-resource") and key in _IDENTITY:
        return _ANY
    raise NotTyped(f"{path}.{key}: field not declared in schema")


def _element(item: Any, schema: JsonObject, *, at: str | None = None) -> str:
    """The step to one element of a set or keyed list; `at` makes an element without its keys an error."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys is None:
        return "v:" + orjson.dumps(item, option=orjson.OPT_SORT_KEYS).decode()
    if item.__class__ is not dict:
        if at is not None:
            raise NotTyped(f"{at}: associative list with keys may not have non-map elements")
        return "k:" + orjson.dumps(item).decode()
    identity = {}
    properties = schema["items"].get("properties", _ANY)
    for key in sorted(keys):
        value = item.get(key)
        if value is None:
            value = properties.get(key, _ANY).get("default")
        if value is not None:
            identity[key] = value
        elif at is not None:
            raise NotTyped(f'{at}: associative list with keys has an element that omits key field "{key}"')
    return "k:" + orjson.dumps(identity).decode()
