"""Sets of field paths in the shape in which `metadata.managedFields` carries them (fieldsV1).

A set is a tree of dictionaries. A key is one step: `f:NAME` a field, `k:{"name":"a"}` an element of a keyed list,
`v:"x"` a member of a set, and `.` the parent itself. So `{"f:spec": {"f:replicas": {}}}` holds `.spec.replicas` alone,
and `{"f:labels": {".": {}, "f:a": {}}}` holds `.labels` and `.labels.a`. A node without children is a member; an inner
node is one only with `.`. At the root `{}` is the empty set.

Working on the wire shape spares a translation of every manager's set on every write. All functions are pure and may
share subtrees with their arguments; none leaves an inner node without members behind, so truth is emptiness.
Design: local-plane.md 2.2 (items 6, 7, 10) and 5.2 (ssa).
"""

from __future__ import annotations

from typing import Any

import orjson

__all__ = [
    "FieldSet",
    "difference",
    "intersection",
    "is_member",
    "ordered",
    "paths",
    "shown_step",
    "union",
    "with_self",
]

FieldSet = dict[str, Any]


def is_member(node: FieldSet) -> bool:
    """Whether the path that leads to this node is itself in the set."""
    return not node or "." in node


def with_self(node: FieldSet | None) -> FieldSet:
    """The node as a member, whatever is in it."""
    return {".": {}, **node} if node else {}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        return left or right
    result = dict(left)
    for step, node in right.items():
        other = result.get(step)
        result[step] = node if other is None else _union_node(other, node)
    return result


def _union_node(left: FieldSet, right: FieldSet) -> FieldSet:
    if left == right:
        return left
    if not left or not right:
        return {".": {}, **(left or right)}
    return union(left, right)


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of `left` that are not in `right`; removing a parent does not remove its children."""
    if not right:
        return left
    result: FieldSet = {}
    for step, node in left.items():
        other = right.get(step)
        rest = node if other is None else _difference_node(node, other)
        if rest is not None:
            result[step] = rest
    return result


def _difference_node(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not left:
        return None if is_member(right) else left
    if not right:
        return {step: node for step, node in left.items() if step != "."} or None
    return _normal(difference(left, right))


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for step, node in left.items():
        other = right.get(step)
        if other is not None:
            common = _intersection_node(node, other)
            if common is not None:
                result[step] = common
    return result


def _intersection_node(left: FieldSet, right: FieldSet) -> FieldSet | None:
    if not left or not right:
        return {} if is_member(left) and is_member(right) else None
    return _normal(intersection(left, right))


def _normal(node: FieldSet) -> FieldSet | None:
    if not node:
        return None
    return {} if node.keys() == {"."} else node


def ordered(fields: FieldSet) -> FieldSet:
    """The same set with its steps sorted, so that equal sets are equal bytes."""
    return {step: ordered(fields[step]) if fields[step] else {} for step in sorted(fields)}


def paths(fields: FieldSet, prefix: str = "") -> list[str]:
    """Every member as conflicts name it: `.spec.containers[name="app"].image`."""
    found: list[str] = []
    for step in sorted(fields):
        if step == ".":
            continue
        node, path = fields[step], prefix + shown_step(step)
        if is_member(node):
            found.append(path)
        found.extend(paths(node, path))
    return found


def shown_step(step: str) -> str:
    """One step as messages show it: `.name`, `[name="a"]` or `[="x"]`."""
    kind, _, text = step.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "v":
        return f"[={text}]"
    if kind == "k":
        keys = orjson.loads(text)
        return "[" + ",".join(f"{name}={orjson.dumps(value).decode()}" for name, value in keys.items()) + "]"
    return f"[{text}]"
