"""Check a configuration against its type, and list the fields that it names.

Naming a field is claiming it, so a configuration must fit: a field that the schema does not have, or an element
without its key, could not be owned by anybody. Everything that is wrong is said at once. Live objects are not asked:
what was stored once was judged by its schema, and may have an element twice.
"""

from __future__ import annotations

from typing import Any

import orjson

from kardinal_local.plane.apply.elements import NoElement, element
from kardinal_local.plane.apply.fieldsets import FieldSet, shown_step, with_self
from kardinal_local.plane.apply.types import Form, Type, type_of
from kardinal_local.plane.documents import JsonObject

__all__ = ["NotTyped", "check", "conforms", "field_set"]


class NotTyped(ValueError):
    """A value does not fit its type."""


def conforms(obj: JsonObject, *, schema: JsonObject | None) -> bool:
    """Whether an object can be read as one of its type; elements may be there twice."""
    return _fits(obj, type_of(schema), duplicates=True)


def check(value: Any, declared: Type) -> None:
    """Refuse a configuration that does not fit; only then is it said where."""
    if _fits(value, declared, duplicates=False):
        return
    problems = _problems(value, declared, "")
    if problems:
        raise NotTyped(problems[0] if len(problems) == 1 else "\n  ".join(["errors:", *sorted(problems)]))


def _fits(value: Any, declared: Type, *, duplicates: bool) -> bool:
    found = value.__class__
    if value is None or found is _CLASSES.get(declared.scalar):
        return True
    match declared.form(value):
        case Form.SCALAR:
            return not _scalar_problem(value, declared.scalar)
        case Form.MAP:
            return found is dict and _map_fits(value, declared, duplicates=duplicates)
    return found is list and _list_fits(value, declared, duplicates=duplicates)


def _map_fits(value: dict[str, Any], declared: Type, *, duplicates: bool) -> bool:
    fields, extra = declared.fields, declared.element
    for key, item in value.items():
        child = fields.get(key, extra)
        if child is None or not _fits(item, child, duplicates=duplicates):
            return False
    return True


def _list_fits(value: list[Any], declared: Type, *, duplicates: bool) -> bool:
    if not declared.atomic_list:
        try:
            if len({element(item, declared) for item in value}) < len(value) and not duplicates:
                return False
        except NoElement:
            return False
    items = declared.elements
    return all(_fits(item, items, duplicates=duplicates) for item in value)


def _problems(value: Any, declared: Type, path: str) -> list[str]:
    if value is None:
        return []
    match declared.form(value):
        case Form.SCALAR:
            problem = _scalar_problem(value, declared.scalar)
            return [_placed(path, problem)] if problem else []
        case Form.MAP:
            if value.__class__ is not dict:
                return [_placed(path, f"expected map, got {_shown(value)}")]
            return _map_problems(value, declared, path)
    if value.__class__ is not list:
        return [_placed(path, f"expected list, got {_shown(value)}")]
    return _list_problems(value, declared, path)


def _map_problems(value: dict[str, Any], declared: Type, path: str) -> list[str]:
    problems = []
    for key, item in value.items():
        child = declared.fields.get(key) or declared.element
        place = f"{path}.{key}"
        problems += [_placed(place, "field not declared in schema")] if child is None else _problems(item, child, place)
    return problems


def _list_problems(value: list[Any], declared: Type, path: str) -> list[str]:
    problems: list[str] = []
    seen = set()
    for index, item in enumerate(value):
        place = f"[{index}]"
        if not declared.atomic_list:
            try:
                step = element(item, declared)
            except NoElement as error:
                return [*problems, _placed(path, f"element {index}: {error}")]
            place = shown_step(step)
            if step in seen:
                problems.append(_placed(path, f"duplicate entries for key {place}"))
            seen.add(step)
        problems += _problems(item, declared.elements, path + place)
    return problems


def _scalar_problem(value: Any, scalar: str) -> str:
    found = value.__class__
    match scalar:
        case "numeric" if found not in (int, float):
            return f"expected numeric (int or float), got {_GO_TYPES.get(found, 'map[string]interface {}')}"
        case "string" if found is not str:
            return f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case "boolean" if found is not bool:
            return f"expected boolean, got {_shown(value)}"
        case "untyped" if found in (dict, list):
            return f"expected any scalar, got {_shown(value)}"
    return ""


_CLASSES = {"string": str, "boolean": bool, "numeric": int}
_GO_TYPES = {str: "string", bool: "bool", list: "[]interface {}"}


def _placed(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem


def _shown(value: Any) -> str:
    """A value as Go's %v prints it, behind a pointer."""
    return f"&{{{_plain(value)}}}"


def _plain(value: Any) -> str:
    match value:
        case dict():
            return "map[" + " ".join(f"{key}:{_plain(value[key])}" for key in sorted(value)) + "]"
        case list():
            return "[" + " ".join(_plain(item) for item in value) + "]"
        case str():
            return value
        case None:
            return "<nil>"
    return orjson.dumps(value).decode()


def _go_syntax(value: Any) -> str:
    """A value as Go's %#v prints it."""
    match value:
        case bool() | int() | float():
            return orjson.dumps(value).decode()
        case list():
            return "[]interface {}{" + ", ".join(_go_syntax(item) for item in value) + "}"
        case dict():
            entries = (f"{_go_syntax(key)}:{_go_syntax(value[key])}" for key in sorted(value))
            return "map[string]interface {}{" + ", ".join(entries) + "}"
        case None:
            return "interface {}(nil)"
    return orjson.dumps(value).decode()


def field_set(value: Any, declared: Type) -> FieldSet:
    """The fields that an object speaks of."""
    return (_fields_of(value, declared) if value.__class__ is dict else None) or {}


def _fields_of(value: dict[str, Any], declared: Type) -> FieldSet | None:
    """None when nothing in it is a member."""
    fields: FieldSet = {}
    for key, item in value.items():
        child = declared.fields.get(key)
        node = _node(item, child or declared.child(key))
        if child is None or item is None or item == {}:
            # An entry of a map belongs to those who name it; a declared field is only the way to its content.
            node = with_self(node)
        if node is not None:
            fields[f"f:{key}"] = node
    return fields or None


def _node(value: Any, declared: Type) -> FieldSet | None:
    match declared.form(value):
        case Form.MAP:
            if declared.atomic_map:
                return {}
            return _fields_of(value, declared) if value.__class__ is dict else None
        case Form.SCALAR:
            return {}
    if declared.atomic_list:
        return {}
    return _elements_of(value, declared) if value.__class__ is list else None


def _elements_of(value: list[Any], declared: Type) -> FieldSet | None:
    fields: FieldSet = {}
    for item in value:
        step = element(item, declared)
        # Parts of a duplicate element have no owner.
        fields[step] = {} if step in fields else with_self(_node(item, declared.elements))
    return fields or None
