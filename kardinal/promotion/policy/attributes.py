"""The attributes that the expression of a gate may read, for example `bundle.upstreamSoakMinutes`.

A gate that reads an unknown attribute stays closed, and its reason suggests the nearest known name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kardinal.cel import Program, Reference
from kardinal.objects.suggestions import nearest
from kardinal.promotion.metrics.readings import METRICS, metric_fault
from kardinal.promotion.policy.drift import TARGET_DRIFT

__all__ = ["BUNDLE_ROOTS", "DAYS", "reads_perishable", "trusts_creator", "unserved", "withheld"]

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""The values of `schedule.dayOfWeek`."""

Fields = Mapping[str, "Fields | None"]
"""The fields of a value by name; None allows any field below it, and the name `EACH` stands for every name."""

EACH = "*"


def _fields(*names: str) -> Fields:
    return dict.fromkeys(names)


SERVED: Fields = {
    "bundle": {
        "name": None,
        "version": None,
        "type": None,
        "labels": None,
        "provenance": _fields("commitSHA", "ciRunURL", "author", "buildTimestamp"),
        "intent": _fields("target", "skip"),
        "emergency": None,
        "attested": _fields("token", "maySkip"),
        "tagMoved": None,
        "upstreamSoakMinutes": None,
    },
    "schedule": _fields("isWeekend", "isHoliday", "hour", "dayOfWeek"),
    "environment": _fields("name", "approval"),
    "previousBundle": _fields("version"),
    "upstream": {EACH: _fields("version", "healthy", "verifiedAt")},
    "contracts": {EACH: {EACH: _fields("version")}},
    "delegation": _fields("status"),
    TARGET_DRIFT: _fields("unreconciled"),
    "approvals": {},
    "externalApproval": {EACH: _fields("approved", "reason", "at")},
    METRICS: {EACH: _fields("value", "status", "ageSeconds")},
}
"""The attributes by variable."""

BUNDLE_ROOTS = frozenset(SERVED) - {"schedule", "environment"}
"""The variables that have a value only if there is a Bundle."""

_PERISHABLE = frozenset(
    {
        *("bundle.upstreamSoakMinutes", "schedule.isHoliday", "upstream", "contracts", "delegation"),
        *(TARGET_DRIFT, "approvals", "externalApproval", METRICS),
    }
)
"""Attributes, with all below them, that can change at any moment without a change of the Bundle: an answer that has
read one counts for a limited time."""

_CHOSEN = frozenset(["bundle.emergency", "bundle.labels", "bundle.name", "bundle.provenance"])
"""Attributes whose value the creator of a Bundle chooses freely."""


def unserved(program: Program) -> str | None:
    """Return why `program` can never be evaluated: it reads an attribute that is not served. None if all are served."""
    for reference in sorted(program.references, key=str):
        if reference.root == METRICS:
            if (told := metric_fault(reference, program.source)) is not None:
                return told
            continue
        if (known := _known(reference)) is not None:
            return f"there is no attribute {reference}{_hint(str(reference), known)}"
        if reference.root == "contracts" and len(reference.path) < 2:
            example = 'contracts["payments"]["prod"].version'
            return f"contracts needs the names of a Pipeline and of an environment as literals, as in {example}"
    return None


def withheld(program: Program, scope: Collection[str]) -> str | None:
    """Return a variable that `program` reads and that is not in `scope`; None if there is none.

    Its value was not read for this evaluation, which is another thing than that there is none: no expression may open a
    gate by testing that it is absent.
    """
    return min((each.root for each in program.references if each.root not in scope), default=None)


def reads_perishable(program: Program) -> bool:
    """Return whether `program` reads one of `_PERISHABLE`, or a value that contains one."""
    # The schedule is read by its attributes, and bare only for inWindow, which knows no holidays.
    read = [(each.root, *each.path) for each in program.references if each.path or each.root != "schedule"]
    listed = [tuple(path.split(".")) for path in _PERISHABLE]
    return any(one[: len(other)] == other or other[: len(one)] == one for one in read for other in listed)


def trusts_creator(program: Program) -> str | None:
    """Return an attribute in `program` that the creator of a Bundle chooses, if the program reads no attested one.

    Return None if the program reads `bundle.attested`, or no attribute that the creator chooses.
    """
    read = {".".join((reference.root, *reference.path[:1])) for reference in program.references}
    chosen = sorted(read & _CHOSEN)
    return chosen[0] if chosen and "bundle.attested" not in read and "bundle" not in read else None


def _known(reference: Reference) -> list[str] | None:
    """Return the names that the author may have meant if `reference` is not served; None if it is served."""
    if reference.root not in SERVED:
        return [f"{root}.{name}" for root, names in SERVED.items() for name in names or ()]
    fields: Fields | None = SERVED
    above = ""
    for name in (reference.root, *reference.path):
        if fields is None:
            return None
        if name not in fields and EACH not in fields:
            return [f"{above}{known}" for known in fields]
        fields = fields[name] if name in fields else fields[EACH]
        above += f"{name}."
    return None


def _hint(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known, cutoff=0.5)
    if near:
        return f"; did you mean {near}?"
    return f"; there are: {', '.join(known)}" if known else ""
