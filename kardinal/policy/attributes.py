"""The attributes that a gate's expression may read.

A gate that reads an attribute which is not served stays closed and says so, with the nearest name that is served.
Attributes that DD promises for later are told apart from typing mistakes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kardinal.cel import Program, Reference
from kardinal.objects.suggestions import nearest
from kardinal.objects.supported import UNAVAILABLE_ATTRIBUTES

__all__ = ["DAYS", "trusts_creator", "unserved"]

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""The values of `schedule.dayOfWeek`."""

SERVED: Mapping[str, Mapping[str, frozenset[str] | None]] = {
    "bundle": {
        "name": None,
        "version": None,
        "type": None,
        "labels": None,
        "provenance": frozenset(["commitSHA", "ciRunURL", "author", "buildTimestamp"]),
        "intent": frozenset(["target", "skip"]),
        "emergency": None,
        "attested": frozenset(["token", "maySkip"]),
        "tagMoved": None,
        "upstreamSoakMinutes": None,
    },
    "schedule": {"isWeekend": None, "hour": None, "dayOfWeek": None},
    "environment": {"name": None, "approval": None},
    "previousBundle": {"version": None},
}
"""The attributes by root; a set bounds the fields of an attribute, None leaves them open."""


_CHOSEN = frozenset(["bundle.emergency", "bundle.labels", "bundle.name", "bundle.provenance"])
"""Attributes whose value is what the creator of a Bundle says."""


def unserved(program: Program) -> str | None:
    """Why a program can never be answered: the first attribute of it that is not served."""
    for reference in sorted(program.references, key=str):
        if reference.root in UNAVAILABLE_ATTRIBUTES:
            return f"{reference} is not available in this version"
        if (known := _known(reference)) is not None:
            return f"there is no attribute {reference}{_hint(str(reference), known)}"
    return None


def trusts_creator(program: Program) -> str | None:
    """Return what of a Bundle an expression reads that its creator chooses, where it reads nothing that is attested."""
    read = {".".join((reference.root, *reference.path[:1])) for reference in program.references}
    chosen = sorted(read & _CHOSEN)
    return chosen[0] if chosen and "bundle.attested" not in read and "bundle" not in read else None


def _known(reference: Reference) -> list[str] | None:
    """Return what could have been meant, where `reference` is not served; None where it is."""
    attributes = SERVED.get(reference.root)
    if attributes is None:
        return [f"{root}.{name}" for root, names in SERVED.items() for name in names]
    if not reference.path:
        return None
    name, *rest = reference.path
    if name not in attributes:
        return [f"{reference.root}.{known}" for known in attributes]
    fields = attributes[name]
    if fields is None or not rest or rest[0] in fields:
        return None
    return [f"{reference.root}.{name}.{field}" for field in sorted(fields)]


def _hint(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known, cutoff=0.5)
    return f"; did you mean {near}?" if near else f"; there are: {', '.join(known)}"
