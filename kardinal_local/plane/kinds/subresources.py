"""Validate the paths that a definition names beside its schema: of its scale, its columns and its selectable fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import Path, duplicate, invalid, render, required, too_many
from kardinal_local.plane.schemas.fieldpaths import FieldPathError, find_field

__all__ = ["column_causes", "scale_causes", "selectable_causes"]

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE: Final = frozenset({"string", "boolean", "integer"})
_SELECTABLE_LIMIT: Final = 8


def scale_causes(scale: JsonObject | None, at: str) -> Iterator[Cause]:
    """What is wrong with the paths of a scale subresource."""
    if scale is None:
        return
    yield from _under(scale.get("specReplicasPath") or "", f"{at}.specReplicasPath", (".spec.",), ".spec")
    yield from _under(scale.get("statusReplicasPath") or "", f"{at}.statusReplicasPath", (".status.",), ".status")
    if selector := scale.get("labelSelectorPath"):
        roots = (".spec.", ".status.")
        yield from _under(selector, f"{at}.labelSelectorPath", roots, "either .spec or .status")


def _under(path: str, at: str, roots: tuple[str, ...], told: str) -> Iterator[Cause]:
    if not path:
        yield required(at)
    elif path[0] != ".":
        yield _not_simple(path, at)
    elif not path.startswith(roots):
        yield invalid(at, path, f"should be a json path under {told}")


def _not_simple(path: str, at: str) -> Cause:
    return invalid(at, path, "must be a simple json path starting with .")


def column_causes(columns: list[JsonObject], at: str) -> Iterator[Cause]:
    """What is wrong with printer columns."""
    for index, column in enumerate(columns):
        place = f"{at}[{index}]"
        kind, form, path = (column.get(key) or "" for key in ("type", "format", "jsonPath"))
        if not column.get("name"):
            yield required(f"{place}.name")
        if kind not in _COLUMN_TYPES:
            words = f"must be one of {','.join(_COLUMN_TYPES)}"
            yield invalid(f"{place}.type", kind, words) if kind else required(f"{place}.type", words)
        if form and form not in _COLUMN_FORMATS:
            yield invalid(f"{place}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not path:
            yield required(f"{place}.JSONPath")
        elif path[0] != ".":
            yield _not_simple(path, f"{place}.JSONPath")


def selectable_causes(fields: list[JsonObject], schema: JsonObject | None, at: str) -> Iterator[Cause]:
    """What is wrong with selectable fields."""
    known: set[str] = set()
    for index, field in enumerate(fields):
        text, place = field.get("jsonPath") or "", f"{at}[{index}].jsonPath"
        if not text:
            yield required(place)
            continue
        try:
            path, found = find_field(text, schema or {}, brackets=False)
        except FieldPathError as error:
            yield invalid(place, text, f"is an invalid path: {error}")
            continue
        if _root(path) == "metadata":
            yield invalid(place, text, "must not point to fields in metadata")
        if found.get("type") not in _SELECTABLE:
            words = "must point to a field of type string, boolean or integer."
            yield invalid(place, text, f"{words} Enum string fields and strings with formats are allowed.")
        if render(path) in known:
            yield duplicate(place, text)
        known.add(render(path))
    if len(known) > _SELECTABLE_LIMIT:
        yield too_many(at, len(known), _SELECTABLE_LIMIT)


def _root(path: Path) -> Any:
    step = None
    while path is not None:
        path, step = path
    return step
