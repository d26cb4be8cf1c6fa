"""Sets of field paths in the shape in which `metadata.managedFields` carries them (fieldsV1).

A set is a tree of dictionaries. A key is one step: `f:NAME` a field, `k:{"name":"a"}` an element of a keyed list,
`v:"x"` a member of a set, and `.` the parent itself. So `{"f:spec": {"f:replicas": {}}}` holds `.spec.replicas` alone,
and `{"f:labels": {".": {}, "f:a": {}}}` holds `.labels` and `.labels.a`. A node without children is a member; an inner
node is one only with `.`. At the root `{}` is the empty set.

Working on the wire shape spares a translation of every manager's set on every write. All functions are pure and may
share subtrees with their arguments; none leaves an inner node without members behind, so truth is emptiness.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson

__all__ = [
    "FieldSet",
    "decoded",
    "difference",
    "intersection",
    "is_member",
    "ordered",
    "paths",
    "shown_step",
    "union",
    "with_self",
    "without_tops",
]

FieldSet = dict[str, Any]
_KINDS = frozenset({"f:", "k:", "v:", "i:"})


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


def decoded(fields: Any) -> FieldSet | None:
    """A set as a client wrote it; itself when it is written as it should be, None when it cannot be read."""
    if not isinstance(fields, dict):
        return None
    result: FieldSet = {}
    clean = True
    for step, node in fields.items():
        if step == ".":
            result[step] = {}
            clean = clean and node == {}
            continue
        kind = step[:2]
        if kind not in _KINDS:
            if len(step) < 2 or step[1] != ":":
                return None
            # A later version may know what this is.
            clean = False
            continue
        inner = decoded(node)
        if inner is None or not _readable(kind, step[2:]):
            return None
        result[step] = {} if inner.keys() == {"."} else inner
        clean = clean and result[step] is node
    return fields if clean else result


def _readable(kind: str, text: str) -> bool:
    if kind == "f:":
        return True
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) if kind == "k:" else kind == "v:" or isinstance(value, int)


def without_tops(fields: FieldSet, tops: FieldSet) -> FieldSet:
    """The set without the members of `tops` and all that is below them."""
    result: FieldSet = {}
    for step, node in fields.items():
        other = tops.get(step)
        if other is None:
            result[step] = node
        elif not is_member(other):
            rest = _normal(without_tops(node, other)) if node else node
            if rest is not None:
                result[step] = rest
    return result


def ordered(fields: FieldSet) -> FieldSet:
    """The same set with its steps in order, so that equal sets are equal bytes."""
    return {step: ordered(fields[step]) if fields[step] else {} for step in sorted(fields, key=_rank)}


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Every member as conflicts name it, `.spec.containers[name="app"].image`: those of one level, then deeper."""
    steps = [step for step in sorted(fields, key=_rank) if step != "."]
    for step in steps:
        if is_member(fields[step]):
            yield prefix + shown_step(step)
    for step in steps:
        if fields[step]:
            yield from paths(fields[step], prefix + shown_step(step))


@lru_cache(maxsize=4096)
def _rank(step: str) -> tuple[Any, ...]:
    """The place of a step among its siblings: fields by name, then elements by their keys or values."""
    kind, _, text = step.partition(":")
    match kind:
        case "k":
            return (2, *((name, _value_rank(value)) for name, value in orjson.loads(text).items()))
        case "v":
            return (3, _value_rank(orjson.loads(text)))
        case "f":
            return (1, text)
    return (0, text)


def _value_rank(value: Any) -> tuple[int, Any]:
    """Numbers before strings before truth values, as the real server compares them."""
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
    return (3, orjson.dumps(value))


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
