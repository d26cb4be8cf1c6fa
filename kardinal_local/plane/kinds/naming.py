"""Accept the names of a definition: all it asks for, unless another definition of its group has them.

Names are accepted one by one: plural, singular and short names share one space, kind and list kind another. A
definition with a name it did not get is not established; once established it stays so and keeps the names it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from kardinal_local.plane.documents import JsonObject, timestamp

__all__ = ["accept", "is_established", "is_terminating", "set_condition"]

_SINGLE_NAMES = (
    ("plural", "PluralConflict", "resources"),
    ("singular", "SingularConflict", "resources"),
    ("kind", "KindConflict", "kinds"),
    ("listKind", "ListKindConflict", "kinds"),
)


def is_established(document: JsonObject) -> bool:
    return _is_true(document, "Established")


def is_terminating(document: JsonObject) -> bool:
    return _is_true(document, "Terminating")


def _is_true(document: JsonObject, condition: str) -> bool:
    conditions = (document.get("status") or {}).get("conditions") or ()
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)


def set_condition(document: JsonObject, kind: str, status: str, reason: str, message: str, *, now: datetime) -> None:
    """Put a condition into the status; its time is that of its last change of status."""
    conditions: list[JsonObject] = list(document["status"].get("conditions") or ())
    found = next((index for index, one in enumerate(conditions) if one["type"] == kind), None)
    moment = timestamp(now)
    if found is not None and conditions[found]["status"] == status:
        moment = conditions[found]["lastTransitionTime"]
    condition = {"type": kind, "status": status, "lastTransitionTime": moment, "reason": reason, "message": message}
    if found is None:
        conditions.append(condition)
    else:
        conditions[found] = condition
    document["status"]["conditions"] = conditions


def accept(document: JsonObject, *, others: Iterable[JsonObject], now: datetime) -> bool:
    """Accept the names that are free and establish the definition when they all are; whether anything changed."""
    wanted, status = document["spec"]["names"], document["status"]
    accepted = {key: value for key, value in (status.get("acceptedNames") or {}).items() if value}
    if accepted == wanted:
        return False
    before = dict(status)
    _settle(document, wanted, accepted, list(others), now=now)
    return bool(before != status)


def _settle(
    document: JsonObject, wanted: JsonObject, accepted: JsonObject, others: list[JsonObject], *, now: datetime
) -> None:
    taken = {"resources": set(_resources(others)), "kinds": set(_kinds(others))}
    names, conflict = dict(accepted), None
    for name, reason, space in _SINGLE_NAMES[:2]:
        conflict = _take(name, wanted, names, taken[space], reason) or conflict
    conflict = _take_short_names(wanted, names, taken["resources"]) or conflict
    for name, reason, space in _SINGLE_NAMES[2:]:
        conflict = _take(name, wanted, names, taken[space], reason) or conflict
    names.pop("categories", None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    document["status"]["acceptedNames"] = {key: names[key] for key in order if key in names}
    document["status"]["acceptedNames"].setdefault("plural", "")
    document["status"]["acceptedNames"].setdefault("kind", "")
    if conflict is None:
        set_condition(document, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now=now)
        words = ("InitialNamesAccepted", "the initial names have been accepted")
        set_condition(document, "Established", "True", *words, now=now)
        return
    set_condition(document, "NamesAccepted", "False", *conflict, now=now)
    if not is_established(document):
        set_condition(document, "Established", "False", "NotAccepted", "not all names are accepted", now=now)


def _take(name: str, wanted: JsonObject, names: JsonObject, taken: set[str], reason: str) -> tuple[str, str] | None:
    asked = wanted.get(name) or ""
    if asked != names.get(name) and asked in taken:
        return reason, f'"{asked}" is already in use'
    names[name] = asked
    return None


def _take_short_names(wanted: JsonObject, names: JsonObject, taken: set[str]) -> tuple[str, str] | None:
    asked, ours = wanted.get("shortNames") or [], names.get("shortNames") or []
    told = [f'"{one}" is already in use' for one in asked if one not in ours and one in taken]
    if told:
        return "ShortNamesConflict", told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    names.pop("shortNames", None)
    if asked:
        names["shortNames"] = asked
    return None


def _accepted(others: list[JsonObject]) -> Iterator[JsonObject]:
    for other in others:
        yield (other.get("status") or {}).get("acceptedNames") or {}


def _resources(others: list[JsonObject]) -> Iterator[str]:
    for names in _accepted(others):
        yield from filter(None, (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ())))


def _kinds(others: list[JsonObject]) -> Iterator[str]:
    for names in _accepted(others):
        yield from filter(None, (names.get("kind"), names.get("listKind")))
