"""What roles and bindings must look like; their rights are the business of `security`.

Bindings name their role for good: whoever could point one at another role would change what its subjects may do without
holding the right to give it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause

__all__ = ["binding", "role"]

_GROUP = "rbac.authorization.k8s.io"
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_HELP = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def role(document: JsonObject, old: JsonObject | None) -> list[Cause]:
    """A Role or ClusterRole; one without rules says so."""
    namespaced = document["kind"] == "Role"
    document["rules"] = document.get("rules") or None
    causes = [
        cause
        for index, rule in enumerate(document["rules"] or ())
        for cause in _rule(rule, f"rules[{index}]", namespaced=namespaced)
    ]
    aggregation = document.get("aggregationRule")
    if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
        explanation = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        causes.append(_required("aggregationRule.clusterRoleSelectors", explanation))
    return causes


def binding(document: JsonObject, old: JsonObject | None) -> list[Cause]:
    """A RoleBinding or ClusterRoleBinding."""
    namespaced = document["kind"] == "RoleBinding"
    reference = dict(document.get("roleRef") or {})
    document["roleRef"] = reference = {**reference, "apiGroup": reference.get("apiGroup") or _GROUP}
    if document.get("subjects"):
        document["subjects"] = [_completed(subject) for subject in document["subjects"]]
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    causes = []
    if reference["apiGroup"] != _GROUP:
        causes.append(_unsupported("roleRef.apiGroup", reference["apiGroup"], _GROUP))
    if reference.get("kind", "") not in kinds:
        causes.append(_unsupported("roleRef.kind", reference.get("kind", ""), *kinds))
    if not reference.get("name"):
        causes.append(_required("roleRef.name"))
    for index, subject in enumerate(document.get("subjects") or ()):
        causes += _subject(subject, f"subjects[{index}]", namespaced=namespaced)
    if old is not None and reference != old["roleRef"]:
        shown = {"APIGroup": reference["apiGroup"], "Kind": reference.get("kind"), "Name": reference.get("name")}
        causes.append(_invalid("roleRef", shown, "cannot change roleRef"))
    return causes


def _rule(rule: JsonObject, path: str, *, namespaced: bool) -> Iterator[Cause]:
    if not rule.get("verbs"):
        yield _required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            yield _invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            explanation = "rules cannot apply to both regular resources and non-resource URLs"
            yield _invalid(f"{path}.nonResourceURLs", urls, explanation)
        return
    if not rule.get("apiGroups"):
        yield _required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield _required(f"{path}.resources", "resource rules must supply at least one resource")


def _completed(subject: JsonObject) -> JsonObject:
    if subject.get("kind") in {"User", "Group"} and not subject.get("apiGroup"):
        return {**subject, "apiGroup": _GROUP}
    return subject


def _subject(subject: JsonObject, path: str, *, namespaced: bool) -> Iterator[Cause]:
    name, group = subject.get("name", ""), subject.get("apiGroup", "")
    if not name:
        yield _required(f"{path}.name")
    match subject.get("kind", ""):
        case "ServiceAccount":
            if name and not _SUBDOMAIN.fullmatch(name):
                yield _invalid(f"{path}.name", name, _SUBDOMAIN_HELP)
            if group:
                yield _unsupported(f"{path}.apiGroup", group, "")
            if not namespaced and not subject.get("namespace"):
                yield _required(f"{path}.namespace")
        case "User" | "Group":
            if group != _GROUP:
                yield _unsupported(f"{path}.apiGroup", group, _GROUP)
        case kind:
            yield _unsupported(f"{path}.kind", kind, "ServiceAccount", "User", "Group")


def _required(field: str, explanation: str = "") -> Cause:
    return Cause("FieldValueRequired", field, f"Required value: {explanation}" if explanation else "Required value")


def _invalid(field: str, value: Any, explanation: str) -> Cause:
    return Cause("FieldValueInvalid", field, f"Invalid value: {orjson.dumps(value).decode()}: {explanation}")


def _unsupported(field: str, value: str, *supported: str) -> Cause:
    listed = ", ".join(f'"{one}"' for one in supported)
    return Cause("FieldValueNotSupported", field, f'Unsupported value: "{value}": supported values: {listed}')
