"""The kinds that other packages add to `kardinal lint`, `get` and `explain`, by entry points of `kardinal.kinds`.

    [project.entry-points."kardinal.kinds"]
    "carto.run" = "kardinal_supplychain.cli.kinds:KINDS"

An entry point leads to a `KindDeclaration`, and its name is the API group of the kinds. A declaration only names what
it declares, so that `kardinal get --help` imports no command, and `kardinal lint` a package for its own manifests only.
One whose package is not installed is ignored, as `kardinal.cli.main` does with commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kardinal.cli.errors import CommandError
from kardinal.cli.lazy import LazyCommand

if TYPE_CHECKING:
    from kardinal.cli.session import Session
    from kardinal.models.base import Resource
    from kardinal.objects import JsonObject

__all__ = [
    "Complaints",
    "Explainer",
    "KindDeclaration",
    "LintedKind",
    "added_explainers",
    "added_kinds",
    "added_lists",
    "load_explainer",
    "no_complaints",
]

Complaints = Iterable[tuple[str, str]]
"""The fields that are wrong, such as `spec.selector`, each with the sentence that says why."""

Explainer = Callable[["Session", str, str], Awaitable[None]]
"""Print why an object is as it is; the arguments are the session, its name, and the value of `--output`."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class KindDeclaration:
    """The kinds of an API group, each part as "module:attribute", which is imported when it is used.

    `linted` leads to a sequence of `LintedKind`. `lists` are commands of `kardinal get`, by names in the plural such as
    `workloads`. `explained` has an `Explainer` for each kind that `kardinal explain` takes, such as `workload`.
    """

    linted: str
    lists: tuple[LazyCommand, ...] = ()
    explained: Mapping[str, str] = field(default_factory=dict)


@cache
def added_kinds(group: str) -> Mapping[tuple[str, str], LintedKind]:
    """Return the kinds of an API group by apiVersion and kind; none if no package declares the group.

    Raises `CommandError` if what a package declares cannot be used.
    """
    kinds = dict[tuple[str, str], LintedKind]()
    for declaration in _declarations(group).values() if group else ():
        declared = tuple(_loaded(declaration.linted, group))
        if not all(isinstance(kind, LintedKind) for kind in declared):
            raise CommandError(f"{declaration.linted}, declared by {group} of {_GROUP}, is not a list of LintedKind")
        kinds |= {(kind.model.resource.api_version, kind.model.resource.kind): kind for kind in declared}
    return kinds


def added_lists() -> Mapping[str, LazyCommand]:
    """Return the commands that packages add to `kardinal get`, by name. Raises `CommandError`."""
    return {command.name: command for declaration in _declarations().values() for command in declaration.lists}


def added_explainers() -> Mapping[str, str]:
    """Return the groups of the kinds that packages add to `kardinal explain`, by kind. Raises `CommandError`."""
    return {kind: group for group, declaration in _declarations().items() for kind in declaration.explained}


def load_explainer(kind: str) -> Explainer:
    """Return the explainer of a kind of `added_explainers`. Raises `CommandError` if it cannot be loaded."""
    group = added_explainers()[kind]
    explainer: Explainer = _loaded(_declarations(group)[group].explained[kind], group)
    return explainer


def _declarations(group: str | None = None) -> Mapping[str, KindDeclaration]:
    """Return the declarations of all packages, or of one group, by group. Raises `CommandError`."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - reads what is installed: 30 ms

    found = dict[str, KindDeclaration]()
    for entry in entry_points(group=_GROUP) if group is None else entry_points(group=_GROUP, name=group):
        if find_spec(entry.module.partition(".")[0]) is None:
            continue
        declaration = _loaded(entry.value, entry.name)
        if not isinstance(declaration, KindDeclaration):
            raise CommandError(f"the entry point {entry.name} of {_GROUP} is not a KindDeclaration")
        found[entry.name] = declaration
    return found


def _loaded(target: str, group: str) -> Any:
    """Import "module:attribute". Raises `CommandError`."""
    module, _, attribute = target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # foreign code: whatever it raises at its import
        raise CommandError(f"the kinds of {group} cannot be loaded: {error}") from error
