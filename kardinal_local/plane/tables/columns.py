"""Make Table objects, which `kubectl get` prints, from columns and the cells under them.

The server, not kubectl, turns an object into cells; kubectl only aligns them. A CRD brings its columns as JSONPaths,
the built-in kinds have theirs in `builtin`. An age is rendered here too, in the words of the real server, so
that a table of a watch and one of a list agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.tables.jsonpath import JsonPathError, compile_path

__all__ = ["AGE", "NAME", "Cell", "Column", "age", "custom_columns", "table"]

Cell = Callable[[JsonObject, datetime], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `priority` above zero shows it with `-o wide` only."""

    name: str
    type: str
    cell: Cell
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> JsonObject:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def age(moment: Any, now: datetime) -> str:
    """How long ago a timestamp was, shorter the longer it is."""
    if not moment:
        return "<unknown>"
    try:
        since = datetime.fromisoformat(moment)
    except (TypeError, ValueError):
        return "<invalid>"
    if since.tzinfo is None:
        since = since.replace(tzinfo=UTC)
    return _duration(int((now - since).total_seconds()))


def _duration(seconds: int) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, unit: str, small: int, fraction: str) -> str:
    return f"{large}{unit}{small}{fraction}" if small else f"{large}{unit}"


NAME: Final = Column(
    "Name",
    "string",
    lambda obj, now: obj["metadata"].get("name", ""),
    format="name",
    # Clients show these as they are, so they are those of the real server.
    description="Name must be unique within a namespace. Is required when creating resources, although some resources "
    "may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for "
    "creation idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
)
AGE: Final = Column(
    "Age",
    "date",
    lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now),
    description="CreationTimestamp is a timestamp representing the server time when this object was created. It is not "
    "guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is "
    "represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
)


def custom_columns(definitions: Sequence[JsonObject]) -> tuple[Column, ...]:
    """The columns of a CRD's `additionalPrinterColumns` after the name.

    Without any there is the age; so there is when a path cannot be read, which a CRD may hold all the same.
    """
    if not definitions:
        return (NAME, AGE)
    try:
        return (NAME, *map(_custom_column, definitions))
    except JsonPathError:
        return (NAME, AGE)


def _custom_column(definition: JsonObject) -> Column:
    return Column(
        definition["name"],
        definition["type"],
        _cell(definition["jsonPath"], definition["type"]),
        format=definition.get("format", ""),
        description=definition.get("description")
        or f"Custom resource definition column (in JSONPath format): {definition['jsonPath']}",
        priority=definition.get("priority", 0),
    )


def _cell(path: str, kind: str) -> Cell:
    find = compile_path(path)
    show: Cell = _SHOW.get(kind, _as_string)

    def cell(obj: JsonObject, now: datetime) -> Any:
        value: Any = next(find(obj), _NOTHING)
        if value is None and kind == "string":
            return "<no value>"
        return None if value is None or value is _NOTHING else show(value, now)

    return cell


_NOTHING: Final = object()


def _as_string(value: Any, _: datetime) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _as_integer(value: Any, _: datetime) -> int | None:
    return int(value) if type(value) in (int, float) else None


def _as_number(value: Any, _: datetime) -> float | None:
    return value if type(value) in (int, float) else None


def _as_boolean(value: Any, _: datetime) -> bool | None:
    return value if isinstance(value, bool) else None


_SHOW: Final[dict[str, Cell]] = {
    "boolean": _as_boolean,
    "date": age,
    "integer": _as_integer,
    "number": _as_number,
    "string": _as_string,
}


def table(
    objects: Sequence[JsonObject],
    columns: Sequence[Column],
    *,
    metadata: JsonObject,
    include_object: str,
    headers: bool,
    version: str,
    now: datetime,
) -> JsonObject:
    """A `meta.k8s.io` Table; later events of a watch come without headers."""
    rows = [
        {"cells": [column.cell(obj, now) for column in columns], "object": _row_object(obj, include_object, version)}
        for obj in objects
    ]
    result: JsonObject = {"kind": "Table", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}
    result["columnDefinitions"] = [column.definition() for column in columns] if headers else None
    result["rows"] = rows
    return result


def _row_object(obj: JsonObject, include: str, version: str) -> JsonObject | None:
    if include == "None":
        return None
    if include == "Object":
        return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}
