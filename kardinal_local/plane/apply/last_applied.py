"""Migrate the ownership of fields from `kubectl apply` to `kubectl apply --server-side`.

Client-side apply keeps its last configuration in an annotation. When the manager is `kubectl` itself, the real server
takes that annotation as proof: a conflict over a field whose live value is still the one of the annotation is none, and
the annotation is kept in step with what is applied, so that a user can go back. A user who does not want this uses
another manager name.
"""

from __future__ import annotations

from typing import Final

import orjson

from kardinal_local.plane.apply.compare import compare
from kardinal_local.plane.apply.fieldsets import FieldSet, difference
from kardinal_local.plane.apply.typed import NotTyped, check, field_set
from kardinal_local.plane.apply.types import Type
from kardinal_local.plane.documents import JsonObject

__all__ = ["applied_before", "synchronised"]

_MANAGER: Final = "kubectl"
_ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"


def applied_before(live: JsonObject, *, manager: str, declared: Type) -> FieldSet:
    """The fields that kubectl set by client-side apply and that have not been changed since."""
    text = _annotations(live).get(_ANNOTATION)
    if manager != _MANAGER or text is None:
        return {}
    try:
        last = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
        return {}
    try:
        check(last, declared)
    except NotTyped:
        return {}
    change = compare(last, live, declared)
    fields = field_set(last, declared)
    for changed in (change.modified, change.added, change.removed):
        fields = difference(fields, changed)
    return fields


def synchronised(obj: JsonObject, applied: JsonObject, *, manager: str) -> JsonObject:
    """The object with its annotation as the applied configuration says; itself when nothing is to be changed."""
    before = _annotations(obj).get(_ANNOTATION)
    if manager != _MANAGER or before is None:
        return obj
    annotations = {key: value for key, value in _annotations(applied).items() if key != _ANNOTATION}
    configuration = {**applied, "metadata": {**applied["metadata"], "annotations": annotations}}
    if not annotations:
        del configuration["metadata"]["annotations"]
    text = orjson.dumps(configuration, option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE).decode()
    if text == before:
        return obj
    changed = {**_annotations(obj), _ANNOTATION: text}
    return {**obj, "metadata": {**obj["metadata"], "annotations": changed}}


def _annotations(obj: JsonObject) -> JsonObject:
    # There may be a null where a map should be: objects are validated later.
    return obj["metadata"].get("annotations") or {}
