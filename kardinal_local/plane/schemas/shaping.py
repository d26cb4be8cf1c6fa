"""Prune and default an object by its schema, in one walk.

A node gives back a new value and leaves the given one as it was. What happens is decided by the JSON type of the value,
not by the type in the schema: a list where a text belongs is pruned as a list first and refused afterwards. The order
of the real server shows: an unknown field goes before anything is judged; null for a field that is not nullable counts
as absent; a default fills what is absent, and is then filled itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.metadata import METADATA_FIELDS
from kardinal_local.plane.schemas.causes import Path
from kardinal_local.plane.schemas.keywords import EMBEDDED, IDENTITY, PRESERVE

__all__ = ["Report", "Shape", "compile_shape", "with_whole_numbers"]

DEFAULTS_LIMIT: Final = 3 * 1024 * 1024 // 2
"""Bytes, as JSON, of all defaults that one object gets; as much as an object that is stored may have."""

_PLAIN: Final = frozenset({str, int, bool, type(None)})
_SCALARS: Final = _PLAIN | {float}


@dataclass(slots=True)
class Report:
    """What shaping came upon: fields that go, and whether there are numbers with a decimal point.

    `keeps_nulls`: null is no absence, unless a default takes its place; it is judged like any other value.
    """

    keeps_nulls: bool = False
    unknown: list[Path] = field(default_factory=list)
    doubles: bool = False
    defaulted: int = 0

    def fill(self, size: int) -> None:
        """Count a default of `size` bytes; refused when all of them are more than an object may have.

        A default may hold lists whose items have defaults of their own, so that a small definition describes any size.
        """
        self.defaulted += size
        if self.defaulted > DEFAULTS_LIMIT:
            message = f"Request entity too large: the defaults of the object have more than {DEFAULTS_LIMIT} bytes"
            raise StatusError(413, "RequestEntityTooLarge", message)


@dataclass(frozen=True, slots=True)
class Shape:
    """What one schema node keeps of a value."""

    fields: Mapping[str, Shape] = field(default_factory=dict)
    additional: Shape | None = None
    items: Shape | None = None
    kept: frozenset[str] = frozenset()
    preserve: bool = False
    nullable: bool = False
    default: Any = None
    defaults: tuple[tuple[str, Shape], ...] = ()
    default_size: int = 0

    def shaped(self, value: Any, path: Path, report: Report) -> Any:
        """The value without what the schema does not know, and with its defaults."""
        found = value.__class__
        if found in _SCALARS:
            report.doubles |= found is float
            return value
        if found is list:
            return [self._item(item, (path, index), report) for index, item in enumerate(value)]
        result: dict[str, Any] = {}
        fields, additional = self.fields, self.additional
        for key, item in value.items():
            if key in self.kept:
                result[key] = item
                continue
            shape = fields.get(key, additional)
            if shape is None:
                if self.preserve:
                    report.doubles = report.doubles or _has_doubles(item)
                    result[key] = item
                else:
                    report.unknown.append((path, key))
            elif item is not None or shape.nullable or (report.keeps_nulls and shape.default is None):
                result[key] = item if item.__class__ in _PLAIN else shape.shaped(item, (path, key), report)
        for key, shape in self.defaults:
            if key not in result:
                report.fill(shape.default_size)
                result[key] = shape.shaped(shape.default, (path, key), report)
        return result

    def _item(self, item: Any, path: Path, report: Report) -> Any:
        shape = self.items
        if shape is None and self.preserve:
            report.doubles = report.doubles or _has_doubles(item)
            return item
        if shape is None:
            return _NOTHING.shaped(item, path, report)
        if item is None and not shape.nullable:
            report.fill(shape.default_size)
            return shape.shaped(shape.default, path, report)
        if self.preserve and not shape.preserve:
            return _lenient(shape).shaped(item, path, report)
        return shape.shaped(item, path, report)


_LARGE: Final = 2.0**63
_NOTHING: Final = Shape()


def _lenient(shape: Shape) -> Shape:
    """The items of a list that preserves what it does not know do so as well."""
    return replace(shape, preserve=True)


def _has_doubles(value: Any) -> bool:
    found = value.__class__
    if found is dict:
        return any(map(_has_doubles, value.values()))
    return any(map(_has_doubles, value)) if found is list else found is float


def with_whole_numbers(value: Any) -> Any:
    """The value as it is written: 2.0 has no decimal point, once it has been judged as the number it was."""
    if value.__class__ is float:
        return int(value) if value.is_integer() and abs(value) < _LARGE else value
    if value.__class__ is dict:
        return {key: with_whole_numbers(item) for key, item in value.items()}
    if value.__class__ is list:
        return [with_whole_numbers(item) for item in value]
    return value


def compile_shape(schema: JsonObject, *, root: bool = False) -> Shape:
    """The shape of a schema; the type meta and metadata of a whole object are none of its business."""
    fields = {name: compile_shape(child) for name, child in (schema.get("properties") or {}).items()}
    kept = IDENTITY if root else frozenset()
    if schema.get(EMBEDDED) and not root:
        kept = IDENTITY - {"metadata"}
        fields["metadata"] = _METADATA
    extra, items = schema.get("additionalProperties"), schema.get("items")
    additional = None
    if isinstance(extra, dict):
        additional = compile_shape(extra)
    elif extra is not None:
        additional = _NOTHING_NULLABLE
    return Shape(
        fields=fields,
        additional=additional,
        items=compile_shape(items) if isinstance(items, dict) else None,
        kept=kept,
        preserve=bool(schema.get(PRESERVE)),
        nullable=bool(schema.get("nullable")),
        default=schema.get("default"),
        default_size=len(orjson.dumps(schema.get("default"))),
        defaults=tuple((name, shape) for name, shape in fields.items() if shape.default is not None),
    )


_NOTHING_NULLABLE: Final = Shape(nullable=True)
_METADATA: Final = Shape(fields=dict.fromkeys(METADATA_FIELDS, Shape(preserve=True)))
