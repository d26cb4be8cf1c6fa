"""Validate the values at the scale paths of a custom kind.

The paths are plain (`.spec.replicas`); the numbers below them are whole, not negative and of 32 bits, whatever the
schema says.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final, Protocol

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import invalid

__all__ = ["Scaled", "scale_causes"]

_LIMIT: Final = 2**31 - 1
_GO_TYPES: Final[dict[type, str]] = {
    str: "string",
    bool: "bool",
    float: "float64",
    int: "int64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


class WrongType(ValueError):
    """A value at a path has another type than the path promises."""


def _found_at(document: JsonObject, path: str, wanted: type) -> Any:
    """The value at a path; None when there is none."""
    steps = path.removeprefix(".").split(".")
    value: Any = document
    for step in steps:
        if not isinstance(value, dict):
            raise WrongType(f".{'.'.join(steps)} accessor error: {_shown(value)}, expected map[string]interface{{}}")
        if step not in value:
            return None
        value = value[step]
    if type(value) is not wanted:
        raise WrongType(f".{'.'.join(steps)} accessor error: {_shown(value)}, expected {_GO_TYPES[wanted]}")
    return value


def _shown(value: Any) -> str:
    text = (
        {True: "true", False: "false", None: "<nil>"}.get(value, value) if not isinstance(value, dict | list) else value
    )
    return f"{text} is of the type {_GO_TYPES[type(value)]}"


class Scaled(Hashable, Protocol):
    """The paths of one kind; `selector` is empty when it has none."""

    @property
    def replicas(self) -> str: ...

    @property
    def status_replicas(self) -> str: ...

    @property
    def selector(self) -> str: ...


def scale_causes(paths: Scaled, document: JsonObject, *, status: bool) -> Iterator[Cause]:
    """What is wrong with the numbers and the selector of an object."""
    if not status:
        yield from _number(document, paths.replicas)
    yield from _number(document, paths.status_replicas)
    if paths.selector:
        try:
            _found_at(document, paths.selector, str)
        except WrongType as error:
            yield invalid(paths.selector, "", str(error))


def _number(document: JsonObject, path: str) -> Iterator[Cause]:
    try:
        found = _found_at(document, path, int) or 0
    except WrongType as error:
        yield invalid(path, 0, str(error))
        return
    if found < 0:
        yield invalid(path, found, "should be a non-negative integer")
    elif found > _LIMIT:
        yield invalid(path, found, f"should be less than or equal to {_LIMIT}")
