"""Adjust and check objects of particular kinds before they are stored.

One function per built-in kind that needs one; every other kind is stored as its schema left it.
"""

from __future__ import annotations

from collections.abc import Callable

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.kinds import Kind, crds, specification
from kardinal_local.plane.metadata import invalid
from kardinal_local.plane.objects.event_rules import event_problems
from kardinal_local.plane.objects.names import finalizer_problems

__all__ = ["admit", "notes"]

EVENTS = "events"

Admission = Callable[[JsonObject, JsonObject | None], list[Cause]]


def admit(kind: Kind, document: JsonObject, *, old: JsonObject | None) -> list[Cause]:
    """Complete `document`; the causes for which it must be refused.

    Below its first level the document may share parts with the live object: they are replaced, never changed.
    """
    if kind.storage == EVENTS:
        return event_problems(kind, document, old)
    admission = _ADMISSIONS.get((kind.group, kind.kind))
    return [] if admission is None else admission(document, old)


def _namespace(document: JsonObject, old: JsonObject | None) -> list[Cause]:
    causes = []
    for index, finalizer in enumerate(document["spec"].get("finalizers", ())):
        at = f"spec.finalizers[{index}]"
        causes += [invalid(at, finalizer, problem) for problem in finalizer_problems(finalizer)]
    phase = document["status"].get("phase", "")
    expected = "Terminating" if "deletionTimestamp" in document["metadata"] else "Active"
    if old is not None and phase != expected:
        empty = "not empty" if expected == "Terminating" else "empty"
        causes.append(invalid("status.Phase", phase, f"may only be '{expected}' if `deletionTimestamp` is {empty}"))
    return causes


def _definition(document: JsonObject, old: JsonObject | None) -> list[Cause]:
    return specification.problems(document, old=old)


def notes(kind: Kind, document: JsonObject, *, old: JsonObject | None) -> tuple[str, ...]:
    """What the author of a good document should know all the same."""
    if (kind.group, kind.kind) == ("apiextensions.k8s.io", "CustomResourceDefinition"):
        return crds.warnings(document, old=old)
    return kind.typed.notes(document) if kind.typed is not None else ()


_ADMISSIONS: dict[tuple[str, str], Admission] = {
    ("", "Namespace"): _namespace,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}
