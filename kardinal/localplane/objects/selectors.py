"""Label and field selectors.

Labels are matched on what the store keeps beside each object, without decoding it. Field selectors know
metadata.name and metadata.namespace of every kind and what an Event is about; anything else is refused, as on the real
server: a selector that is silently ignored would select everything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.kinds import Kind
from kardinal.localplane.statuses import bad_request
from kardinal.localplane.storage import Entry

__all__ = ["FieldSelector", "LabelSelector", "Selector", "parse_fields", "parse_labels"]

_KEY = r"(?:[A-Za-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
_SET = re.compile(rf"({_KEY})\s+(in|notin)\s+\(([^()]*)\)")
_EQUALITY = re.compile(rf"({_KEY})\s*(==|=|!=)\s*({_VALUE})")
_ORDER = re.compile(rf"({_KEY})\s*([<>])\s*(-?\d+)")
_EXISTS = re.compile(rf"(!?)\s*({_KEY})")
_COMMA_OUTSIDE_PARENTHESES = re.compile(r",(?![^(]*\))")
_EVENT_FIELDS = {
    "": ("involvedObject", ("reason", "type", "source", "reportingComponent")),
    "events.k8s.io": ("regarding", ("reason", "type", "reportingController")),
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label; `operator` is in, notin, exists, missing, > or <."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "missing":
                return value is None
        if value is None or not re.fullmatch(r"-?\d+", value):
            return False
        (bound,) = self.values
        return int(value) > int(bound) if self.operator == ">" else int(value) < int(bound)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms of (path, wanted value, negated)."""

    terms: tuple[tuple[str, str, bool], ...] = ()

    def wanted(self, path: str) -> str | None:
        """The one value that `path` must have, when the selector says so."""
        return next((value for term, value, negated in self.terms if term == path and not negated), None)

    def matches(self, entry: Entry) -> bool:
        document: JsonObject | None = None
        for path, wanted, negated in self.terms:
            if path == "metadata.name":
                actual = entry.name
            elif path == "metadata.namespace":
                actual = entry.namespace
            else:
                document = document if document is not None else entry.decode()
                actual = _value(document, path)
            if (actual == wanted) == negated:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Selector:
    """What a list or watch asks for."""

    labels: LabelSelector = LabelSelector()
    fields: FieldSelector = FieldSelector()
    namespace: str = ""

    @property
    def everything(self) -> bool:
        return not self.labels.requirements and not self.fields.terms

    def matches(self, entry: Entry) -> bool:
        if self.namespace and entry.namespace != self.namespace:
            return False
        return self.labels.matches(entry.labels) and self.fields.matches(entry)


@lru_cache(maxsize=256)
def parse_labels(text: str) -> LabelSelector:
    terms = [term.strip() for term in _COMMA_OUTSIDE_PARENTHESES.split(text)] if text.strip() else []
    return LabelSelector(tuple(_requirement(term, text) for term in terms))


def parse_fields(text: str, *, kind: Kind) -> FieldSelector:
    terms = []
    for term in filter(None, text.split(",")):
        match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", term)
        if match is None:
            raise bad_request(f"invalid field selector {text!r}: cannot read {term!r}")
        path, operator, value = match.groups()
        if not _selectable(kind, path):
            raise bad_request(f'field label not supported: "{path}"')
        terms.append((_stored(path), value, operator == "!="))
    return FieldSelector(tuple(terms))


def _requirement(term: str, text: str) -> Requirement:
    if match := _SET.fullmatch(term):
        key, operator, values = match.groups()
        return Requirement(key, operator, frozenset(value.strip() for value in values.split(",")))
    if match := _EQUALITY.fullmatch(term):
        key, operator, value = match.groups()
        return Requirement(key, "notin" if operator == "!=" else "in", frozenset({value}))
    if match := _ORDER.fullmatch(term):
        key, operator, value = match.groups()
        return Requirement(key, operator, frozenset({value}))
    if match := _EXISTS.fullmatch(term):
        return Requirement(match[2], "missing" if match[1] else "exists")
    raise bad_request(f"unable to parse requirement: cannot read {term!r} of label selector {text!r}")


def _selectable(kind: Kind, path: str) -> bool:
    if path == "metadata.name" or (path == "metadata.namespace" and kind.namespaced):
        return True
    if kind.kind == "Event" and kind.group in _EVENT_FIELDS:
        subject, plain = _EVENT_FIELDS[kind.group]
        return path in plain or path.partition(".")[0] == subject
    return (kind.group, kind.kind, path) in {
        ("", "Secret", "type"),
        ("", "Namespace", "status.phase"),
        ("", "Pod", "status.phase"),
        ("", "Pod", "spec.nodeName"),
    }


def _stored(path: str) -> str:
    """The path in the stored spelling of an event."""
    head, dot, rest = path.partition(".")
    stored = {"regarding": "involvedObject", "reportingController": "reportingComponent"}.get(head, head)
    return f"{stored}{dot}{rest}"


def _value(document: JsonObject, path: str) -> str:
    if path == "source":
        path = "source.component" if "source" in document else "reportingComponent"
    value: object = document
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else str(value)
