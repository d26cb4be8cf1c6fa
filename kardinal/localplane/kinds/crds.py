"""CustomResourceDefinitions: what must hold before one is stored, and the kinds it brings.

A definition that could not be served in full (a schema that is not structural, a column without a path, a rule that
does not compile) is refused when it is applied, naming the field; it is never stored and then half obeyed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kardinal.localplane.documents import JsonObject, timestamp
from kardinal.localplane.errors import Cause, InvalidSchema
from kardinal.localplane.kinds.below import ScalePaths
from kardinal.localplane.kinds.kind import Kind, View
from kardinal.localplane.schemas import compile_validator
from kardinal.localplane.tables import custom_columns

__all__ = ["CLEANUP_FINALIZER", "accept", "is_established", "kinds_of", "prepare", "problems"]

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def prepare(document: JsonObject, *, old: JsonObject | None) -> None:
    """Fill in what the real server fills in."""
    spec = document["spec"] = {"conversion": {"strategy": "None"}, **(document.get("spec") or {})}
    names = spec.get("names")
    if isinstance(names, dict) and isinstance(names.get("kind"), str):
        spec["names"] = {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List", **names}
    if old is None:
        metadata = document["metadata"]
        metadata["finalizers"] = sorted({*metadata.get("finalizers", ()), CLEANUP_FINALIZER})
        stored = [version["name"] for version in _versions(document) if version.get("storage")]
        document["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}


def problems(document: JsonObject) -> list[Cause]:
    """Everything that is wrong with a definition."""
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return [Cause("FieldValueRequired", "spec", "Required value")]
    found = list(_missing(spec))
    if found:
        return found
    names, versions = spec["names"], spec["versions"]
    expected = f"{names['plural']}.{spec['group']}"
    if document["metadata"].get("name") != expected:
        found.append(
            Cause(
                "FieldValueInvalid",
                "metadata.name",
                f'Invalid value: "{document["metadata"].get("name")}": must be spec.names.plural+"."+spec.group',
            )
        )
    if spec["scope"] not in {"Namespaced", "Cluster"}:
        found.append(
            Cause(
                "FieldValueNotSupported",
                "spec.scope",
                f'Unsupported value: "{spec["scope"]}": supported values: "Cluster", "Namespaced"',
            )
        )
    if sum(version.get("storage") is True for version in versions) != 1:
        found.append(
            Cause(
                "FieldValueInvalid",
                "spec.versions",
                "Invalid value: must have exactly one version marked as storage version",
            )
        )
    for index, version in enumerate(versions):
        found += _schema_problems(version, f"spec.versions[{index}]")
    return found


def kinds_of(document: JsonObject) -> list[Kind]:
    """The kinds that a stored definition brings, one per served version."""
    spec = document["spec"]
    names = spec["names"]
    stored = next(f"{spec['group']}/{version['name']}" for version in spec["versions"] if version.get("storage"))
    return [
        Kind(
            spec["group"],
            version["name"],
            names["kind"],
            names["plural"],
            singular=names.get("singular", names["kind"].lower()),
            list_kind=names.get("listKind", f"{names['kind']}List"),
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames", ())),
            categories=tuple(names.get("categories", ())),
            status="status" in version.get("subresources", {}),
            scale=_scale(version.get("subresources", {}).get("scale")),
            custom=True,
            generation=True,
            unconditional_update=False,
            view=None if version.get("storage") else _version_view(f"{spec['group']}/{version['name']}", stored),
            selectable_fields=tuple(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ()),
            deprecation=_deprecation(spec, version),
            column_definitions=tuple(version.get("additionalPrinterColumns", ())),
            custom_schema=version.get("schema", {}).get("openAPIV3Schema"),
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _scale(paths: JsonObject | None) -> ScalePaths | None:
    if paths is None:
        return None
    return ScalePaths(paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath") or "")


def _deprecation(spec: JsonObject, version: JsonObject) -> str:
    if not version.get("deprecated"):
        return ""
    named = f"{spec['group']}/{version['name']} {spec['names']['kind']}"
    return str(version.get("deprecationWarning") or f"{named} is deprecated")


def is_established(document: JsonObject) -> bool:
    return any(
        condition["type"] == "Established" and condition["status"] == "True"
        for condition in document.get("status", {}).get("conditions", ())
    )


def accept(document: JsonObject, *, conflict: str | None, now: datetime) -> bool:
    """Accept the names of a definition, or say what they collide with; whether anything changed."""
    spec, status = document["spec"], document.setdefault("status", {})
    moment = timestamp(now)
    if conflict is None:
        wanted = [
            _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found", moment),
            _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted", moment),
        ]
    else:
        wanted = [
            _condition("NamesAccepted", "False", "NameConflict", conflict, moment),
            _condition("Established", "False", "NotAccepted", "not all names are accepted", moment),
        ]
    current = {condition["type"]: condition for condition in status.get("conditions", ())}
    changed = False
    for condition in wanted:
        old = current.get(condition["type"], {})
        if (old.get("status"), old.get("reason")) != (condition["status"], condition["reason"]):
            current[condition["type"]] = condition
            changed = True
    names = spec["names"] if conflict is None else {"plural": "", "kind": ""}
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    if status.get("acceptedNames") != names or not set(stored) <= set(status.get("storedVersions", ())):
        changed = True
    status["conditions"] = list(current.values())
    status["acceptedNames"] = names
    status["storedVersions"] = sorted({*status.get("storedVersions", ()), *stored})
    return changed


def _version_view(api_version: str, stored: str) -> View:
    """Conversion strategy None: versions differ in their name only."""
    return View(
        version=stored.rpartition("/")[2],
        inward=lambda document: document | {"apiVersion": stored},
        outward=lambda document: document | {"apiVersion": api_version},
    )


def _condition(kind: str, status: str, reason: str, message: str, moment: str) -> JsonObject:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": moment}


def _versions(document: JsonObject) -> list[JsonObject]:
    versions = document["spec"].get("versions")
    return [version for version in versions if isinstance(version, dict)] if isinstance(versions, list) else []


def _missing(spec: JsonObject) -> list[Cause]:
    names = spec.get("names")
    required: list[tuple[str, Any]] = [
        ("spec.group", spec.get("group")),
        ("spec.scope", spec.get("scope")),
        ("spec.versions", spec.get("versions")),
        ("spec.names.plural", names.get("plural") if isinstance(names, dict) else None),
        ("spec.names.kind", names.get("kind") if isinstance(names, dict) else None),
    ]
    causes = [Cause("FieldValueRequired", path, "Required value") for path, value in required if not value]
    if not isinstance(spec.get("versions"), list):
        return causes
    for index, version in enumerate(spec["versions"]):
        if not isinstance(version, dict) or not isinstance(version.get("name"), str):
            causes.append(Cause("FieldValueRequired", f"spec.versions[{index}].name", "Required value"))
    return causes


def _schema_problems(version: JsonObject, path: str) -> list[Cause]:
    schema = version.get("schema", {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        return [Cause("FieldValueRequired", f"{path}.schema.openAPIV3Schema", "Required value: schemas are required")]
    try:
        compile_validator(schema)
        custom_columns(version.get("additionalPrinterColumns", []), field=f"{path}.additionalPrinterColumns")
    except InvalidSchema as error:
        return list(error.causes)
    return []
