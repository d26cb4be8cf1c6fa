"""Parse and match field selectors: `metadata.name=a`, `status.phase!=Running`.

Every kind can be selected by name and namespace, a few built-in ones by more, a custom one by what its definition
says. Anything else is refused, as on the real server: a selector that is silently ignored would select everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.statuses import bad_request
from kardinal_local.plane.storage import Entry

__all__ = ["FieldSelector", "parse_fields"]

_OPERATORS = ("!=", "==", "=")
_ESCAPED = frozenset("\\,=")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_POD = (
    "spec.nodeName spec.host spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork "
    "status.phase status.podIP status.podIPs status.nominatedNodeName"
)
_EXTRA: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): tuple(_POD.split()),
    ("", "Event"): (
        *(f"involvedObject.{field}" for field in _REFERENCE),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("events.k8s.io", "Event"): (
        *(f"regarding.{field}" for field in _REFERENCE),
        "reason",
        "reportingController",
        "type",
    ),
    ("", "Secret"): ("type",),
    ("", "Namespace"): ("status.phase",),
    ("", "Service"): ("spec.clusterIP", "spec.type"),
    ("batch", "Job"): ("status.successful",),
}
_STORED = {
    "spec.host": "spec.nodeName",
    "status.podIPs": "status.podIP",
    "status.successful": "status.succeeded",
    "reportingController": "reportingComponent",
}
_UNSET = {"spec.hostNetwork": "false", "status.succeeded": "0"}


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


def parse_fields(text: str, *, kind: Kind) -> FieldSelector:
    terms = []
    for term in sorted(filter(None, _terms(text))):
        split = min(((term.find(one), -len(one), one) for one in _OPERATORS if one in term), default=None)
        if split is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        start, _, operator = split
        terms.append((term[:start], _unescaped(term[start + len(operator) :]), operator == "!="))
    for path, _, _ in terms:
        if not _selectable(kind, path):
            raise _refusal(kind, path)
    return FieldSelector(tuple((_stored(path), value, negated) for path, value, negated in terms))


def _terms(text: str) -> list[str]:
    """What stands between commas that are not escaped."""
    terms, escaped = [""], False
    for character in text:
        if character == "," and not escaped:
            terms.append("")
        else:
            terms[-1] += character
        escaped = character == "\\" and not escaped
    return terms


def _unescaped(value: str) -> str:
    plain, escaped = [], False
    for character in value:
        if escaped and character not in _ESCAPED:
            raise bad_request(f"invalid field selector: invalid escape sequence: \\{character}")
        if not escaped and character in {",", "="}:
            raise bad_request(f"invalid field selector: unescaped character in value: {ord(character)}")
        escaped = character == "\\" and not escaped
        if not escaped:
            plain.append(character)
    if escaped:
        raise bad_request("invalid field selector: invalid escape sequence: \\")
    return "".join(plain)


def _selectable(kind: Kind, path: str) -> bool:
    extra = _EXTRA.get((kind.group, kind.kind))
    if path == "metadata.name" or path in (extra or ()) or path in kind.selectable_fields:
        return True
    # Of the built-in kinds without rules of their own, even those outside namespaces may be asked for one.
    return path == "metadata.namespace" and (kind.namespaced or (not kind.custom and extra is None))


def _refusal(kind: Kind, path: str) -> StatusError:
    if kind.kind == "Job" and not kind.custom:
        return bad_request(f'field label "{path}" not supported for Job')
    if kind.custom or (kind.group, kind.kind) in _EXTRA:
        return bad_request(f"field label not supported: {path}")
    known = '"metadata.name", "metadata.namespace"'
    return bad_request(f"{orjson.dumps(path).decode()} is not a known field selector: only {known}")


def _stored(path: str) -> str:
    """The path in the stored spelling."""
    if path.startswith("regarding."):
        return f"involvedObject.{path.removeprefix('regarding.')}"
    return _STORED.get(path, path)


def _value(document: JsonObject, path: str) -> str:
    if path == "source":
        path = "source.component" if "source" in document else "reportingComponent"
    value: object = document
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return _UNSET.get(path, "")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
