"""The attributes that the expression of a gate may read, for example `bundle.upstreamSoakMinutes`.

A gate that reads an unknown attribute stays closed, and its reason suggests the nearest known name. Attributes that are
planned for a later version get another message than typing mistakes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kardinal.cel import Program, Reference
from kardinal.objects.suggestions import nearest

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
"""The attributes by variable. A set lists the only fields of an attribute; None allows any field."""

_UNAVAILABLE = frozenset(["metrics", "delegation", "externalApproval", "contracts", "targetDrift"])
"""Roots of attributes that gate expressions cannot read in this version."""

_CHOSEN = frozenset(["bundle.emergency", "bundle.labels", "bundle.name", "bundle.provenance"])
"""Attributes whose value the creator of a Bundle chooses freely."""


def unserved(program: Program) -> str | None:
    """Return why `program` can never be evaluated: it reads an attribute that is not served. None if all are served."""
    for reference in sorted(program.references, key=str):
        if reference.root in _UNAVAILABLE:
            return f"{reference} is not available in this version"
        if (known := _known(reference)) is not None:
            return f"there is no attribute {reference}{_hint(str(reference), known)}"
    return None


def trusts_creator(program: Program) -> str | None:
    """Return an attribute in `program` that the creator of a Bundle chooses, if the program reads no attested one.

    Return None if the program reads `bundle.attested`, or no attribute that the creator chooses.
    """
    read = {".".join((reference.root, *reference.path[:1])) for reference in program.references}
    chosen = sorted(read & _CHOSEN)
    return chosen[0] if chosen and "bundle.attested" not in read and "bundle" not in read else None


def _known(reference: Reference) -> list[str] | None:
    """Return the names that the author may have meant if `reference` is not served; None if it is served."""
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
