"""Complete CustomResourceDefinitions, and make the kinds that they define.

One definition brings one kind per served version. Conversion strategy None: the versions of an object differ in their
name only, and it is stored under that of the storage version. A kind goes by the names its definition was given
(`naming`), not by those it asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kardinal_local.plane import schemas
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.kinds.kind import Kind, View
from kardinal_local.plane.kinds.naming import is_terminating, set_condition
from kardinal_local.plane.kinds.subresource_types import ScalePaths

__all__ = ["CLEANUP_FINALIZER", "fill", "kinds_of", "mark_deleted", "prepare", "warnings"]

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STAGES = {None: 0, "beta": 1, "alpha": 2}


def fill(spec: JsonObject) -> None:
    """Complete the spec of a definition as its author would have."""
    names: JsonObject = dict(spec.get("names") or {})
    kind = names.get("kind") or ""
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
        spec["names"] = names
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}


def prepare(document: JsonObject, old: JsonObject | None) -> None:
    """Set what is the server's to set: nothing has happened to a new definition yet."""
    status: JsonObject = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}}
    if old is not None:
        status = dict(document.get("status") or old.get("status") or status)
    stored = list(status.get("storedVersions") or ())
    versions: list[JsonObject] = document["spec"].get("versions") or []
    name = next((version.get("name") for version in versions if version.get("storage")), None)
    if name is not None and name not in stored:
        stored.append(name)
    status["storedVersions"] = stored or None
    document["status"] = status


def mark_deleted(document: JsonObject, *, now: datetime) -> None:
    """A deleted definition waits until its objects are gone."""
    finalizers = list(document["metadata"].get("finalizers") or ())
    if CLEANUP_FINALIZER not in finalizers:
        document["metadata"]["finalizers"] = [*finalizers, CLEANUP_FINALIZER]
    message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    set_condition(document, "Terminating", "True", "InstanceDeletionPending", message, now=now)


def warnings(document: JsonObject, *, old: JsonObject | None) -> tuple[str, ...]:
    """Return the warnings of a valid definition: formats that are not validated."""
    known = {name for schema in _schemas(old) for name in schemas.unknown_formats(schema)}
    found = [name for schema in _schemas(document) for name in schemas.unknown_formats(schema)]
    return tuple(f'unrecognized format "{name}"' for name in found if name not in known)


def _schemas(document: JsonObject | None) -> list[JsonObject]:
    """The different schemas of a definition."""
    versions = (document or {}).get("spec", {}).get("versions") or []
    found = [schema for version in versions if (schema := (version.get("schema") or {}).get("openAPIV3Schema"))]
    return found[:1] if all(schema == found[0] for schema in found) else found


def kinds_of(document: JsonObject, *, outdated: Callable[[schemas.Validator], bool] = lambda _: False) -> list[Kind]:
    """The kinds that a stored definition brings, one per served version; the preferred one first.

    Where versions differ in their schemas, or objects are `outdated` in the eyes of the one schema there is, an object
    is read by the schema of the version it was stored in, whatever version is asked for.
    """
    spec = document["spec"]
    stored = next(f"{spec['group']}/{version['name']}" for version in spec["versions"] if version.get("storage"))
    served = sorted((one for one in spec["versions"] if one.get("served")), key=lambda one: _precedence(one["name"]))
    different = _schemas(document)
    readers: dict[str, schemas.Validator] = {}
    if len(different) > 1 or any(outdated(schemas.compile_validator(schema)) for schema in different):
        readers = {
            f"{spec['group']}/{version['name']}": schemas.compile_validator(version["schema"]["openAPIV3Schema"])
            for version in spec["versions"]
        }
    return [_kind(document, version, stored, readers) for version in served]


def _kind(document: JsonObject, version: JsonObject, stored: str, readers: Mapping[str, schemas.Validator]) -> Kind:
    spec = document["spec"]
    names = (document.get("status") or {}).get("acceptedNames") or spec["names"]
    api_version = f"{spec['group']}/{version['name']}"
    subresources: JsonObject = version.get("subresources") or {}
    schema: JsonObject = version["schema"]["openAPIV3Schema"]
    return Kind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        singular=names.get("singular") or "",
        list_kind=names.get("listKind") or "",
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        status="status" in subresources,
        custom=True,
        readable=frozenset(f"{spec['group']}/{one['name']}" for one in spec["versions"]),
        generation=True,
        unconditional_update=False,
        view=_view(api_version, stored, readers),
        selectable_fields=tuple(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ()),
        deprecation=_deprecation(spec, version),
        terminating=is_terminating(document),
        scale=_scale(subresources.get("scale")),
        column_definitions=tuple(version.get("additionalPrinterColumns") or ()),
        custom_schema=schema,
    )


def _scale(paths: JsonObject | None) -> ScalePaths | None:
    if paths is None:
        return None
    return ScalePaths(paths["specReplicasPath"], paths["statusReplicasPath"], paths.get("labelSelectorPath") or "")


def _deprecation(spec: JsonObject, version: JsonObject) -> str:
    """What users of a deprecated version are told."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    told = f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    better: list[Any] = [
        other["name"]
        for other in spec["versions"]
        if other.get("served")
        and not other.get("deprecated")
        and _precedence(other["name"]) < _precedence(version["name"])
    ]
    if not better:
        return told
    return f"{told}; use {spec['group']}/{min(better, key=_precedence)} {spec['names']['kind']}"


def _view(api_version: str, stored: str, readers: Mapping[str, schemas.Validator]) -> View | None:
    """How a version is kept; None when objects are read as they are stored."""
    if api_version == stored and not readers:
        return None

    def outward(document: JsonObject) -> JsonObject:
        reader = readers.get(document["apiVersion"])
        return (document if reader is None else reader.filled(document)) | {"apiVersion": api_version}

    return View(
        stored.rpartition("/")[2],
        inward=lambda document: document | {"apiVersion": stored},
        outward=outward,
        own=api_version == stored,
    )


def _precedence(version: str) -> tuple[int, int, int, str]:
    """Return a sort key for the name of a version: stable before beta before alpha, the later before the earlier.

    Names of another form follow in alphabetical order.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match.groups()
    return (_STAGES[stage], -int(major), -int(minor or 0), version)
