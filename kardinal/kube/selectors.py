"""Evaluate selectors on an object, to predict the decision of the server.

A write that takes an object out of an informer's selector never comes back through its watch, so a writer that waits
for its own writes must know for which of them to wait. Label selectors follow the grammar of the API; field selectors
are compared by path.
"""

from __future__ import annotations

import re
from typing import Any

from kardinal.objects import JsonObject

__all__ = ["matches"]

# Commas separate requirements except inside the parentheses of a set.
SEPARATOR = re.compile(r",(?![^(]*\))")
SET = re.compile(r"^(?P<key>[^\s!=]+)\s+(?P<not>not)?in\s*\((?P<values>[^)]*)\)$")
EQUALITY = re.compile(r"^(?P<key>[^\s!=]+)\s*(?P<operator>!=|==|=)\s*+(?P<value>.*)$")


def matches(obj: JsonObject, *, labels: str | None = None, fields: str | None = None) -> bool:
    """Return whether `obj` satisfies both selectors; every object satisfies an absent selector."""
    present: dict[str, str] = obj["metadata"].get("labels") or {}
    return all(_label_holds(term, present) for term in _terms(labels)) and all(
        _field_holds(term, obj) for term in _terms(fields)
    )


def _terms(selector: str | None) -> list[str]:
    return [term.strip() for term in SEPARATOR.split(selector) if term.strip()] if selector else []


def _label_holds(term: str, labels: dict[str, str]) -> bool:
    if found := SET.match(term):
        values = {value.strip() for value in found["values"].split(",")}
        return (labels.get(found["key"]) in values) != bool(found["not"])
    if found := EQUALITY.match(term):
        return (labels.get(found["key"]) == found["value"]) == (found["operator"] != "!=")
    return term[1:].strip() not in labels if term.startswith("!") else term in labels


def _field_holds(term: str, obj: JsonObject) -> bool:
    found = EQUALITY.match(term)
    if found is None:
        return False
    value: Any = obj
    for part in found["key"].split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return (("" if value is None else str(value)) == found["value"]) == (found["operator"] != "!=")
