"""Read fields of objects whose kinds are defined by other projects.

A cluster may have any version of such a kind. A field that is missing, or has another type than its tool gives it, is
read as empty: it proves nothing, and it never causes an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

__all__ = ["condition", "entries", "items", "latest", "moment", "number", "section", "text"]

_EMPTY: Mapping[str, Any] = {}


def section(found: object, *path: str) -> Mapping[str, Any]:
    """Return the mapping at a path; empty if there is none."""
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else _EMPTY


def text(found: object, *path: str) -> str:
    """Return the text at a path; empty if there is none."""
    value = section(found, *path[:-1]).get(path[-1])
    return value if isinstance(value, str) else ""


def number(found: object, *path: str) -> int | None:
    """Return the integer at a path; None if there is none."""
    value = section(found, *path[:-1]).get(path[-1])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def items(found: object, *path: str) -> Sequence[Any]:
    """Return the list at a path; empty if there is none."""
    value = section(found, *path[:-1]).get(path[-1])
    return value if isinstance(value, list) else ()


def entries(found: object, *path: str) -> Sequence[Mapping[str, Any]]:
    """Return the mappings of the list at a path."""
    return [entry for entry in items(found, *path) if isinstance(entry, Mapping)]


def moment(found: object, *path: str) -> datetime | None:
    """Return the time at a path; None if there is none, or if it has no time zone."""
    try:
        time = datetime.fromisoformat(text(found, *path))
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def condition(found: object, type_: str) -> Mapping[str, Any]:
    """Return the condition of a type in an object's status; empty if there is none."""
    return next((each for each in entries(found, "status", "conditions") if each.get("type") == type_), _EMPTY)


def latest(moments: Iterable[datetime | None]) -> datetime | None:
    """Return the latest of the given times; None if all are None."""
    return max((time for time in moments if time is not None), default=None)
