"""Compare two states of an object, and return what differs as sets of fields.

Two values are walked side by side along their type. A value that changes its form (a map that becomes a list) is
modified itself, and what was inside or is inside now is removed or added. Null is a value of any form without content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from kardinal_local.plane.apply.elements import element
from kardinal_local.plane.apply.fieldsets import FieldSet, union, without_tops
from kardinal_local.plane.apply.types import Form, Type
from kardinal_local.plane.documents import JsonObject

__all__ = ["Difference", "compare", "same"]

_ABSENT: Final = object()
_SIMPLE: Final = frozenset({str, int, bool, type(None)})


@dataclass(slots=True)
class Difference:
    """What an update adds, changes and removes, as sets of fields."""

    added: FieldSet = field(default_factory=dict)
    modified: FieldSet = field(default_factory=dict)
    removed: FieldSet = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)

    @property
    def taken(self) -> FieldSet:
        """The fields that the author of the difference owns now."""
        return union(self.modified, self.added)

    def without(self, ignored: FieldSet) -> Difference:
        """The difference outside of some parts of an object."""
        if not ignored or not self:
            return self
        parts = (self.added, self.modified, self.removed)
        return Difference(*(without_tops(part, ignored) for part in parts))

    def put(self, step: str, inner: Difference) -> None:
        """Take over what was found below a step."""
        if inner.added:
            self.added[step] = inner.added
        if inner.modified:
            self.modified[step] = inner.modified
        if inner.removed:
            self.removed[step] = inner.removed


def compare(old: JsonObject, new: JsonObject, declared: Type) -> Difference:
    """The difference between two states of one object."""
    difference = Difference()
    _compare_maps(old, new, declared, difference)
    return difference


def same(left: Any, right: Any) -> bool:
    """Equality as JSON has it: to Python, `True` is `1`, also deep inside."""
    if left is right:
        return True
    kind = left.__class__
    if kind is not right.__class__:
        # A number is the same number whatever way it is written.
        return left == right and {kind, right.__class__} == {int, float}
    if left != right:
        return False
    if kind is not dict and kind is not list:
        return True
    sort = orjson.OPT_SORT_KEYS
    return orjson.dumps(left, option=sort) == orjson.dumps(right, option=sort)


def _compare_maps(old: JsonObject, new: JsonObject, declared: Type, difference: Difference) -> None:
    for key, item in new.items():
        previous = old.get(key, _ABSENT)
        if previous is item:
            continue
        if item.__class__ in _SIMPLE and item.__class__ is previous.__class__ and item == previous:
            continue
        _compare(previous, item, declared.child(key), f"f:{key}", difference)
    for key, previous in old.items():
        if key not in new:
            _compare(previous, _ABSENT, declared.child(key), f"f:{key}", difference)


def _compare(old: Any, new: Any, declared: Type, step: str, difference: Difference) -> None:
    """Add what differs at and below one step."""
    if old is _ABSENT:
        difference.added[step] = _everything(new, declared)
        return
    if new is _ABSENT:
        difference.removed[step] = _everything(old, declared)
        return
    if same(old, new):
        return
    before, after = declared.form(old), declared.form(new)
    if before is after:
        _compare_as(after, (old, new), declared, step, difference)
        return
    difference.modified[step] = {}
    if added := _content(_everything(new, declared)):
        difference.added[step] = added
    if removed := _content(_everything(old, declared)):
        difference.removed[step] = removed


def _compare_as(form: Form, values: tuple[Any, Any], declared: Type, step: str, difference: Difference) -> None:
    kind = dict if form is Form.MAP else list
    sides: list[Any] = [one if one.__class__ is kind else kind() for one in values]
    old, new = sides
    atomic = declared.atomic_map if form is Form.MAP else declared.atomic_list
    inner = Difference()
    if form is Form.SCALAR or atomic or not (old or new):
        difference.modified[step] = {}
    elif form is Form.MAP:
        _compare_maps(old, new, declared, inner)
    else:
        _compare_lists(old, new, declared, inner)
    difference.put(step, inner)


def _compare_lists(old: list[Any], new: list[Any], declared: Type, difference: Difference) -> None:
    before, after, items = _by_step(old, declared), _by_step(new, declared), declared.elements
    for step, found in after.items():
        previous = before.get(step, [])
        if len(previous) < 2 and len(found) < 2:
            _compare(previous[0] if previous else _ABSENT, found[0], items, step, difference)
        elif len(found) < 2:
            _compare(_ABSENT, found[0], items, step, difference)
            difference.removed[step] = {}
        elif len(previous) < 2:
            if previous:
                _compare(previous[0], _ABSENT, items, step, difference)
            difference.added[step] = {}
        elif not same(previous, found):
            difference.modified[step] = {}
    for step, previous in before.items():
        if step not in after:
            if len(previous) < 2:
                _compare(previous[0], _ABSENT, items, step, difference)
            else:
                difference.removed[step] = {}


def _by_step(items: list[Any], declared: Type) -> dict[str, list[Any]]:
    """The elements by name; what a schema allows twice may be there twice."""
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(element(item, declared), []).append(item)
    return found


def _everything(value: Any, declared: Type) -> FieldSet:
    """Everything from here down, containers included: what a write that adds the value takes."""
    if not value:
        return {}
    if value.__class__ is dict:
        if declared.atomic_map or not declared.is_map:
            return {}
        entries = {f"f:{key}": _everything(item, declared.child(key)) for key, item in value.items()}
        return {".": {}, **entries}
    if value.__class__ is not list or declared.atomic_list or not declared.is_list:
        return {}
    result: FieldSet = {".": {}}
    for item in value:
        step = element(item, declared)
        result[step] = {} if step in result else _everything(item, declared.elements)
    return result


def _content(node: FieldSet) -> FieldSet:
    """What is inside, without the container."""
    return {step: child for step, child in node.items() if step != "."}
