"""Field paths and the sentences in which Kubernetes reports what is wrong with a field.

A path is a chain of `(parent, step)` pairs ending in None, the root: a step down costs one small tuple, and only a path
that ends up in an error is ever rendered. The sentences are those that kubectl shows after the field; scripts and
people match on them, so every module takes them from here. Design: local-plane.md 2.3, errors.
"""

from __future__ import annotations

from typing import Any

import orjson

from kardinal.localplane.errors import Cause

__all__ = [
    "Path",
    "duplicate",
    "for_reason",
    "forbidden",
    "invalid",
    "not_supported",
    "render",
    "required",
    "too_few",
    "too_long",
    "too_many",
    "type_invalid",
    "type_name",
]

Path = tuple[Any, str | int] | None

_TYPE_NAMES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}


def render(path: Path) -> str:
    """`spec.steps[0].name`, as it stands in a cause."""
    parts: list[str] = []
    while path is not None:
        path, step = path
        parts.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(parts)).removeprefix(".")


def type_name(value: Any) -> str:
    """The JSON type of a decoded value."""
    return _TYPE_NAMES[type(value)]


def invalid(path: Path, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", render(path) or "<nil>", f"Invalid value: {_shown(value)}: {detail}")


def type_invalid(path: Path, value: Any, expected: str) -> Cause:
    """A value of another JSON type than the schema says; only the type found is shown."""
    found = type_name(value)
    field = render(path)
    detail = f'{field} in body must be of type {expected}: "{found}"'
    return Cause("FieldValueTypeInvalid", field or "<nil>", f'Invalid value: "{found}": {detail}')


def required(path: Path, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", render(path), f"Required value: {detail}" if detail else "Required value")


def forbidden(path: Path, detail: str) -> Cause:
    return Cause("FieldValueForbidden", render(path), f"Forbidden: {detail}")


def not_supported(path: Path, value: Any, supported: list[Any]) -> Cause:
    listed = ", ".join(_shown(item) for item in supported)
    return Cause(
        "FieldValueNotSupported", render(path), f"Unsupported value: {_shown(value)}: supported values: {listed}"
    )


def too_long(path: Path, limit: int) -> Cause:
    return Cause("FieldValueTooLong", render(path), f"Too long: may not be more than {limit} bytes")


def too_many(path: Path, actual: int, limit: int) -> Cause:
    return Cause("FieldValueTooMany", render(path), f"Too many: {actual}: must have at most {limit} items")


def too_few(path: Path, value: Any, limit: int, what: str) -> Cause:
    return invalid(path, value, f"{render(path)} in body should have at least {limit} {what}")


def duplicate(path: Path, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", render(path), f"Duplicate value: {_shown(value)}")


def for_reason(reason: str, path: Path, value: Any, detail: str) -> Cause:
    """The cause for a rule that names its own reason; an object or list at fault is not repeated."""
    match reason:
        case "FieldValueForbidden":
            return forbidden(path, detail)
        case "FieldValueRequired":
            return required(path, detail)
        case "FieldValueDuplicate":
            return duplicate(path, value)
        case _ if isinstance(value, dict | list):
            return Cause("FieldValueInvalid", render(path) or "<nil>", f"Invalid value: {detail}")
        case _:
            return invalid(path, value, detail)


def _shown(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
