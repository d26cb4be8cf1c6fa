"""The owner as selectors and templates read it: `metadata` and `spec`, with its unset fields.

Cartographer reads typed values of Go, in which an optional field that is not set is null while its parent is present. A
template may ask for it, and a selector may say that it does not exist; below a parent that is absent it is not found.
An object that is inserted as a whole has only the fields that are set.

The status is left out: an object that depends on the status of its owner would be stamped for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kardinal.objects import JsonObject

__all__ = ["owner_document"]

_HIDDEN = ("resourceVersion", "managedFields")

_REF: Final = {"branch": None, "tag": None, "commit": None}
_SOURCE: Final = {"git": {"url": None, "ref": _REF}, "image": None, "subPath": None}
_BUILD: Final = {"env": None}
_UNSET: Final[Mapping[str, Mapping[str, Any]]] = {
    "Workload": {
        "params": None,
        "source": _SOURCE,
        "build": _BUILD,
        "env": None,
        "image": None,
        "resources": None,
        "serviceAccountName": "",
        "serviceClaims": None,
    },
    "Deliverable": {"params": None, "source": _SOURCE, "serviceAccountName": ""},
    "Runnable": {"selector": {"matchingLabels": None}, "inputs": None, "serviceAccountName": ""},
}
"""The optional fields of `spec` by kind, each with its fields, or with the value that it has while it is not set."""


class _Typed(dict[str, Any]):
    """An object whose unset fields can be read all the same; they are neither in a loop over it nor in its JSON."""

    def __init__(self, values: Mapping[str, Any], unset: Mapping[str, Any]) -> None:
        super().__init__(
            (name, _Typed(value, unset[name]))
            if isinstance(unset.get(name), Mapping) and isinstance(value, Mapping)
            else (name, value)
            for name, value in values.items()
        )
        self._unset = unset

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._unset

    def __missing__(self, name: str) -> Any:
        zero = self._unset[name]
        if zero is _BUILD:
            # In Go a value, not a pointer: it is there without being set.
            return _Typed({}, _BUILD)
        return None if isinstance(zero, Mapping) else zero


def owner_document(owner: JsonObject) -> JsonObject:
    """Return metadata and spec of an owner, in which optional fields that are not set are read as null."""
    metadata = {key: value for key, value in (owner.get("metadata") or {}).items() if key not in _HIDDEN}
    kind = str(owner.get("kind", ""))
    spec = _Typed(owner.get("spec") or {}, _UNSET.get(kind, {}))
    return {"apiVersion": owner.get("apiVersion"), "kind": kind, "metadata": metadata, "spec": spec}
