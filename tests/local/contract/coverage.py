"""Which case is about what: area x verb x outcome, told by the cases themselves.

@pytest.mark.covers("delete", "deletecollection", "success")
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pytest

__all__ = ["AREAS", "OUTCOMES", "VERBS", "Cell", "cell_of", "coverage"]

AREAS = (
    "discovery",
    "openapi",
    "crud",
    "names",
    "field-validation",
    "dry-run",
    "lists",
    "selectors",
    "watch",
    "negotiation",
    "patch",
    "apply",
    "delete",
    "crds",
    "namespaces",
    "bootstrap",
    "events",
    "leases",
    "accounts",
    "rbac",
    "reviews",
    "limits",
    "errors",
    "warnings",
    "admission",
    "built-in",
    "tables",
)
VERBS = ("get", "list", "watch", "create", "update", "patch", "apply", "delete", "deletecollection", "discover")
OUTCOMES = ("success", "refusal", "conflict")


@dataclass(frozen=True, order=True)
class Cell:
    """One cell of the table."""

    area: str
    verb: str
    outcome: str


def cell_of(item: pytest.Item) -> Cell | None:
    """What the mark of a case says; None without one. ValueError for a word that the table does not have."""
    mark = item.get_closest_marker("covers")
    if mark is None:
        return None
    cell = Cell(*mark.args)
    for word, words in ((cell.area, AREAS), (cell.verb, VERBS), (cell.outcome, OUTCOMES)):
        if word not in words:
            raise ValueError(f"{item.nodeid} covers {word!r}, which is none of {', '.join(words)}")
    return cell


def coverage(items: Iterable[pytest.Item]) -> Mapping[Cell, list[str]]:
    """The cases of each cell, as `file::function`."""
    found: dict[Cell, dict[str, None]] = defaultdict(dict)
    for item in items:
        if (cell := cell_of(item)) is not None:
            found[cell][item.nodeid.partition("[")[0]] = None
    return {cell: list(functions) for cell, functions in sorted(found.items())}
