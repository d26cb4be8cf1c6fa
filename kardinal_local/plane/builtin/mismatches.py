"""Find where in a document a value does not fit its type, and report it in the words of the real server.

The real server reads a type in two ways, and each has words of its own. A body is JSON text, whose decoder names the
struct and the field. What a strategic merge patch made is in memory already: it is converted, by code that tells no
more than the two types that do not go together. A type that reads itself is handed JSON in both cases.
"""

from __future__ import annotations

from typing import Any, Final

from kardinal_local.plane.documents import JSON_NAMES
from kardinal_local.plane.errors import Unreadable

__all__ = ["Inlined", "MapKey", "Path", "mismatch", "no_text", "report"]

Path = tuple[Any, "str | int | MapKey"] | None

_GO_KINDS: Final = {str: "string", int: "int64", float: "float64", bool: "bool", list: "slice", dict: "map"}
_CONVERTIBLE: Final = frozenset({("int64", "string"), ("float64", "int32"), ("float64", "int64")})
"""What Go itself would convert: a number to the character of that number, or to the whole part of it."""


class Inlined(str):
    """A step to a field of an embedded struct, which the real server names where it speaks of types."""

    __slots__ = ("within",)
    within: str


class MapKey(str):
    """A step to an entry of a map, which the real server leaves out where it speaks of types."""

    __slots__ = ()


def mismatch(value: Any, path: Path, owner: str, go: str, *, kind: str = "") -> Unreadable:
    """A value of another type than `go`, which is of a Go kind; of none when the type reads itself."""
    found = JSON_NAMES[value.__class__]
    if found == "number" and kind in {"", "int32", "int64"}:
        found = f"number {value!r}"
    place = f"{owner}.{'.'.join(_fields(path))}"
    text = f"json: cannot unmarshal {found} into Go struct field {place} of type {go}"
    if not kind:
        return Unreadable(text, converted=f"json: cannot unmarshal {found} into Go value of type {go}")
    return Unreadable(text, converted=_unconverted(_GO_KINDS[value.__class__], kind, go))


def no_text(value: Any) -> Unreadable:
    """Something else than the text that a type reads itself from."""
    return Unreadable(f"json: cannot unmarshal {JSON_NAMES[value.__class__]} into Go value of type string")


def report(path: Path) -> str:
    """A path as it stands in the report of an unknown field."""
    parts: list[str] = []
    while path is not None:
        path, step = path
        parts.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(parts)).removeprefix(".")


def _unconverted(found: str, kind: str, go: str) -> str:
    if kind == "struct":
        return f"cannot restore struct from: {found}"
    if kind in {"map", "slice"}:
        return f"cannot restore {kind} from {found}"
    return f"cannot convert {found} to {go}" if (found, kind) in _CONVERTIBLE else f"unrecognized type: {kind}"


def _fields(path: Path) -> list[str]:
    steps: list[str] = []
    while path is not None:
        path, step = path
        if step.__class__ is Inlined:
            steps.append(f"{step.within}.{step}")
        elif step.__class__ is str:
            steps.append(step)
    return steps[::-1]
