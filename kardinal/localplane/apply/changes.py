"""What differs between two states of an object, and how one configuration is laid over another.

All functions walk two values side by side along their schema (`shapes`). A merge adds and replaces, never removes:
removal is `remove`, told by field sets what to take away. Elements of a keyed list keep their neighbours, so that an
element somebody else put there does not wander. Design: local-plane.md 2.2 (item 10), 5.2 (ssa).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import orjson

from kardinal.localplane.apply.fieldsets import FieldSet, is_member, with_self
from kardinal.localplane.apply.shapes import ANY, child_schema, is_granular, steps
from kardinal.localplane.documents import JsonObject

__all__ = ["Difference", "compare", "merge", "remove", "with_containers"]


@dataclass(slots=True)
class Difference:
    """What an update adds, changes and removes, as sets of fields."""

    added: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    removed: FieldSet = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


def compare(old: Any, new: Any, schema: JsonObject) -> Difference:
    """The difference between two states of one object, or of one granular part of it."""
    difference = Difference()
    if old is new:
        return difference
    before, after = steps(old, schema), steps(new, schema)
    for step, (item, child) in after.items():
        if step not in before:
            difference.added[step] = _subtree(item, child)
            continue
        previous = before[step][0]
        if _same(previous, item):
            continue
        if previous.__class__ is not item.__class__ or not is_granular(item, child):
            difference.modified[step] = {}
            if content := _content(_subtree(item, child)):
                difference.added[step] = content
            if content := _content(_subtree(previous, child)):
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
            difference.removed[step] = _subtree(item, child)
    return difference


def _subtree(value: Any, schema: JsonObject) -> FieldSet:
    """Everything from here down, containers included: what a write that adds the value takes."""
    if not value or not is_granular(value, schema):
        return {}
    return with_self({step: _subtree(item, child) for step, (item, child) in steps(value, schema).items()})


def _content(node: FieldSet) -> FieldSet:
    """What is inside, without the container."""
    return {step: child for step, child in node.items() if step != "."}


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


def merge(live: Any, applied: Any, schema: JsonObject) -> Any:
    """The live value with the applied one laid over it; elements only the live list has keep their place."""
    if _same(live, applied):
        return live
    if applied.__class__ is not live.__class__ or not is_granular(applied, schema):
        return applied
    if applied.__class__ is dict:
        merged = dict(live)
        for key, item in applied.items():
            merged[key] = merge(live[key], item, child_schema(schema, key)) if key in live else item
        return merged
    ours, theirs = steps(live, schema), steps(applied, schema)
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


def remove(value: Any, fields: FieldSet, schema: JsonObject) -> Any:
    """The value without the given fields, whatever is in them; what loses all its content stays, empty."""
    if value.__class__ is list:
        return [
            remove(item, fields[step], child) if step in fields else item
            for step, (item, child) in steps(value, schema).items()
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
            child = child_schema(schema, key)
            result[key] = remove(item, node, child) if is_granular(item, child) else item
    return result


def with_containers(fields: FieldSet, schema: JsonObject) -> FieldSet:
    """The set with every declared field on the way to a member: who owns a part has a say in the whole."""
    result: FieldSet = {}
    properties = schema.get("properties", ANY)
    for step, node in fields.items():
        if not node:
            result[step] = node
            continue
        kind, name = step[:2], step[2:]
        child = child_schema(schema, name) if kind == "f:" else schema.get("items", ANY)
        inner = with_containers(node, child)
        result[step] = {".": {}, **inner} if kind == "f:" and name in properties else inner
    return result
