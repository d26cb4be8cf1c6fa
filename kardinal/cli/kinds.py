"""The kinds that other packages declare to `kardinal lint`, by entry points of the group `kardinal.kinds`.

    [project.entry-points."kardinal.kinds"]
    "carto.run" = "kardinal_supplychain.cli.kinds:KINDS"

The name of an entry point is the API group of its kinds, so that a package is imported for its own manifests only. One
whose package is not installed is ignored, as `kardinal.cli.main` does with commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from kardinal.cli.errors import CommandError
from kardinal.models.base import Resource
from kardinal.objects import JsonObject

__all__ = ["Complaints", "LintedKind", "added_kinds", "no_complaints"]

Complaints = Iterable[tuple[str, str]]
"""The fields that are wrong, such as `spec.selector`, each with the sentence that says why."""

_GROUP = "kardinal.kinds"


def no_complaints(_: object) -> Complaints:
    """Find nothing."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedKind:
    """The checks of a kind: its model, and functions that find more.

    `problems` are errors of a resource that matches the model, `warnings` what it does without effect. `misplaced`
    looks at the document, for fields of which the model can say only that their type is wrong.
    """

    model: type[Resource]
    problems: Callable[[Any], Complaints] = no_complaints
    warnings: Callable[[Any], Complaints] = no_complaints
    misplaced: Callable[[JsonObject], Complaints] = no_complaints


@cache
def added_kinds(group: str) -> Mapping[tuple[str, str], LintedKind]:
    """Return the kinds of an API group by apiVersion and kind; none if no package declares the group.

    Raises `CommandError` if what a package declares cannot be used.
    """
    kinds = dict[tuple[str, str], LintedKind]()
    for entry in entry_points(group=_GROUP, name=group) if group else ():
        if find_spec(entry.module.partition(".")[0]) is None:
            continue
        try:
            declared = tuple(entry.load())
        except Exception as error:  # foreign code: whatever it raises at its import
            raise CommandError(f"the kinds of {group} cannot be loaded: {error}") from error
        if not all(isinstance(kind, LintedKind) for kind in declared):
            raise CommandError(f"the entry point {group} of {_GROUP} is not a list of LintedKind")
        kinds |= {(kind.model.resource.api_version, kind.model.resource.kind): kind for kind in declared}
    return kinds
