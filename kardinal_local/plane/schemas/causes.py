"""Field paths, and the wording in which Kubernetes reports what is wrong with a field.

A path is a chain of `(parent, step)` pairs ending in None, the root: a step down costs one small tuple, and only a path
that ends up in an error is ever rendered. The sentences are those that kubectl shows after the field; scripts and
people match on them, so every module takes them from here. Values are shown as a Go program shows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.printing import quoted, shown

__all__ = [
    "NOWHERE",
    "OMITTED",
    "MapKey",
    "Path",
    "blocks_rules",
    "duplicate",
    "forbidden",
    "invalid",
    "not_supported",
    "render",
    "required",
    "too_long",
    "too_many",
    "type_invalid",
]

Path = tuple[Any, str | int] | None

NOWHERE: Final = "<nil>"
"""The field of a cause that is about no field."""

OMITTED: Final = object()
"""In place of a value that a sentence does not repeat."""

_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)


class MapKey(str):
    """A step to an entry of a map, told apart from a field: `labels[app]`."""

    __slots__ = ()


def render(path: Path) -> str:
    """`spec.steps[0].name`, as it stands in a cause."""
    parts: list[str] = []
    while path is not None:
        path, step = path
        parts.append(f"[{step}]" if isinstance(step, (int, MapKey)) else f".{step}")
    return "".join(reversed(parts)).removeprefix(".")


def invalid(field: str, value: Any, detail: str) -> Cause:
    seen = "Invalid value" if value is OMITTED else f"Invalid value: {shown(value)}"
    return Cause("FieldValueInvalid", field or NOWHERE, f"{seen}: {detail}")


def type_invalid(field: str, value: str, detail: str) -> Cause:
    """A value of another JSON type than the schema says; `value` is the type found, or a text of the wrong format."""
    return Cause("FieldValueTypeInvalid", field or NOWHERE, f"Invalid value: {quoted(value)}: {detail}")


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", field or NOWHERE, f"Required value: {detail}" if detail else "Required value")


def forbidden(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", field or NOWHERE, f"Forbidden: {detail}")


def not_supported(field: str, value: Any, supported: Iterable[str]) -> Cause:
    listed = ", ".join(map(quoted, supported))
    message = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return Cause("FieldValueNotSupported", field or NOWHERE, message)


def too_long(field: str, limit: int) -> Cause:
    unit = "byte" if limit == 1 else "bytes"
    return Cause("FieldValueTooLong", field or NOWHERE, f"Too long: may not be more than {limit} {unit}")


def too_many(field: str, actual: int, limit: int) -> Cause:
    unit = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", field or NOWHERE, f"Too many: {actual}: must have at most {limit} {unit}")


def duplicate(field: str, value: Any) -> Cause:
    seen = "Duplicate value" if value is OMITTED else f"Duplicate value: {shown(value)}"
    return Cause("FieldValueDuplicate", field or NOWHERE, seen)


def blocks_rules(causes: Iterable[Cause]) -> bool:
    """Whether the object is too broken for its CEL rules to be asked."""
    return any(cause.reason in _BLOCKING for cause in causes)
