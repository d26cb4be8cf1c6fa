"""What the server does to particular kinds before it stores them.

One function per built-in kind that needs one; every other kind is stored as its schema left it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause
from kardinal.localplane.kinds import Kind, crds
from kardinal.localplane.objects import roles

__all__ = ["NAMESPACE_FINALIZER", "admit"]

NAMESPACE_FINALIZER = "kubernetes"
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"

Admission = Callable[[JsonObject, JsonObject | None], list[Cause]]


def admit(kind: Kind, document: JsonObject, *, old: JsonObject | None) -> list[Cause]:
    """Complete `document`; the causes for which it must be refused.

    Below its first level the document may share parts with the live object: they are replaced, never changed.
    """
    admission = _ADMISSIONS.get((kind.group, kind.kind))
    return [] if admission is None else admission(document, old)


def _namespace(document: JsonObject, old: JsonObject | None) -> list[Cause]:
    metadata = document["metadata"]
    metadata["labels"] = {**metadata.get("labels", {}), NAMESPACE_NAME_LABEL: metadata["name"]}
    if old is None:
        document["spec"] = {"finalizers": [NAMESPACE_FINALIZER]}
        document["status"] = {"phase": "Active"}
    else:
        # Only the namespace controller ends a namespace, through its own subresource.
        document["spec"] = old.get("spec", {})
        document["status"] = document.get("status") or old.get("status", {})
    return []


def _secret(document: JsonObject, old: JsonObject | None) -> list[Cause]:
    plain = document.pop("stringData", None)
    causes = []
    if plain:
        encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
        document["data"] = {**(document.get("data") or {}), **encoded}
    for key, value in (document.get("data") or {}).items():
        try:
            base64.b64decode(value, validate=True)
        except (TypeError, ValueError):
            causes.append(Cause("FieldValueInvalid", f"data[{key}]", "Invalid value: must be base64"))
    document.setdefault("type", "Opaque")
    if old is not None and document["type"] != old.get("type"):
        causes.append(Cause("FieldValueInvalid", "type", f'Invalid value: "{document["type"]}": field is immutable'))
    return causes


def _definition(document: JsonObject, old: JsonObject | None) -> list[Cause]:
    crds.prepare(document, old=old)
    return crds.problems(document)


_ADMISSIONS: dict[tuple[str, str], Admission] = {
    ("", "Namespace"): _namespace,
    ("", "Secret"): _secret,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("rbac.authorization.k8s.io", "ClusterRole"): roles.role,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): roles.binding,
    ("rbac.authorization.k8s.io", "Role"): roles.role,
    ("rbac.authorization.k8s.io", "RoleBinding"): roles.binding,
}
