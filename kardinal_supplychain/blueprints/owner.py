"""The owner as selectors and templates read it: `metadata` and `spec`, with its unset fields.

Cartographer reads typed values of Go, in which an optional field that is not set is null while its parent is present. A
template may ask for it, and a selector may say that it does not exist; below a parent that is absent it is not found.
The status is left out: an object that depends on the status of its owner would be stamped for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kardinal.objects import JsonObject

__all__ = ["owner_document"]

_HIDDEN = ("resourceVersion", "managedFields")

_SOURCE: Final[Mapping[str, Any]] = {
    "git": {"url": None, "ref": {"branch": None, "tag": None, "commit": None}},
    "image": None,
    "subPath": None,
}
_UNSET: Final[Mapping[str, Mapping[str, Any]]] = {
    "Workload": {
        "params": None,
        "source": _SOURCE,
        "build": {"env": None},
        "env": None,
        "image": None,
        "resources": None,
        "serviceAccountName": None,
        "serviceClaims": None,
    },
    "Deliverable": {"params": None, "source": _SOURCE, "serviceAccountName": None},
}
"""The optional fields of `spec` by kind; an object has those of a field that holds one."""


def owner_document(owner: JsonObject) -> JsonObject:
    """Return metadata and spec of an owner, with null for optional fields that are not set below a present parent."""
    metadata = {key: value for key, value in (owner.get("metadata") or {}).items() if key not in _HIDDEN}
    kind = str(owner.get("kind", ""))
    spec = _filled(owner.get("spec") or {}, _UNSET.get(kind, {}))
    if kind in _UNSET:
        # Of these two Go has values, not pointers.
        spec["serviceAccountName"] = spec["serviceAccountName"] or ""
        if "build" in spec:
            spec["build"] = spec["build"] or {}
    return {"apiVersion": owner.get("apiVersion"), "kind": kind, "metadata": metadata, "spec": spec}


def _filled(value: Mapping[str, Any], unset: Mapping[str, Any]) -> JsonObject:
    filled = dict(value)
    for key, inner in unset.items():
        present = filled.get(key)
        filled[key] = (
            _filled(present, inner) if isinstance(inner, Mapping) and isinstance(present, Mapping) else present
        )
    return filled
