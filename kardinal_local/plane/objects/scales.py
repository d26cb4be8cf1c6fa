"""Read and write the scale of an object, which has the same form for every kind.

It is a view: what is read is made from the object, what is written goes into it, where its kind keeps it; and so is
the record of who owns the number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kardinal_local.plane import statuses
from kardinal_local.plane.apply import FieldSet, Writer, apply, object_record, scale_record, taken_record
from kardinal_local.plane.builtin import BuiltinType
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause, StatusError
from kardinal_local.plane.kinds import Kind, ScalePaths
from kardinal_local.plane.objects.composition import check_type, identify
from kardinal_local.plane.objects.typing import Source

__all__ = ["SCALE_KIND", "applied", "read_scale", "rescaled", "scale_of"]

SCALE_KIND = Kind(
    "autoscaling",
    "v1",
    "Scale",
    "scales",
    singular="scale",
    list_kind="ScaleList",
    typed=BuiltinType("autoscaling", "v1", "Scale"),
)
Modify = Callable[[JsonObject], JsonObject]

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: Kind, document: JsonObject) -> JsonObject:
    """The scale of an object."""
    paths = _paths(kind)
    wanted = _value(document, paths.replicas)
    if wanted is None and kind.custom:
        told = f'the spec replicas field "{paths.replicas}" does not exist'
        raise statuses.internal_error(told)
    status: JsonObject = {"replicas": _value(document, paths.status_replicas) or 0}
    selector = _value(document, paths.selector) if paths.selector else None
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _formatted(selector)
    metadata = document["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in _IDENTITY if key in metadata},
        "spec": {"replicas": wanted} if wanted else {},
        "status": status,
    }


def read_scale(
    document: Any, *, namespace: str, name: str, validation: str, faults: tuple[str, ...], patched: bool
) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the desired scale of an object, and what to warn of; `patched`: a patch made it of the present."""
    scale, source = Source(SCALE_KIND, validation, faults, shown=document if patched else None).read(document)
    warnings = source.judge()
    with statuses.warning(*warnings):
        identify(SCALE_KIND, scale, namespace=namespace, name=name)
    return scale, warnings


def rescaled(kind: Kind, document: JsonObject, modify: Modify, *, manager: str) -> JsonObject:
    """The object with the scale that `modify` makes of its present one."""
    before = scale_of(kind, document)
    known = scale_record(_managed(document), replicas=_claimed(kind))
    after = modify(before)
    same = _replicas(after) == _replicas(before)
    return _scaled(kind, document, after, record=known if same else taken_record(known, manager=manager))


def applied(kind: Kind, document: JsonObject, configuration: JsonObject, *, by: Writer, force: bool) -> JsonObject:
    """The object with its scale as it is applied."""
    check_type(SCALE_KIND, configuration)
    known = scale_record(_managed(document), replicas=_claimed(kind))
    if kind.custom and not known:
        raise _unconvertible("create manager for existing fields: failed to convert live object", {})
    live = scale_of(kind, document)
    live["metadata"]["managedFields"] = known
    after = apply(live, configuration, by=by, force=force, schema=SCALE_KIND.schema)
    if kind.custom:
        raise _unconvertible("convert new object", configuration.get("metadata") or {})
    after = after | {"metadata": dict(after["metadata"])}
    identify(SCALE_KIND, after, namespace=document["metadata"]["namespace"], name=document["metadata"]["name"])
    return _scaled(kind, document, after, record=_managed(after))


def _unconvertible(what: str, metadata: JsonObject) -> StatusError:
    """Of a custom object the real server asks its own type for the version of the scale."""
    place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; autoscaling/v1, Kind=Scale"
    problem = "request to convert CR to an invalid group/version: autoscaling/v1"
    return StatusError(500, "", f"failed to {what} ({place}) to proper version: {problem}")


def _scaled(kind: Kind, document: JsonObject, scale: JsonObject, *, record: list[JsonObject]) -> JsonObject:
    """The object as a scale wants it; a scale that says which state it has seen holds for that state alone."""
    name, metadata = document["metadata"]["name"], scale.get("metadata") or {}
    replicas = _replicas(scale)
    if replicas < 0 and not kind.custom:
        problem = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise statuses.invalid(SCALE_KIND, name, [Cause("FieldValueInvalid", "spec.replicas", problem)])
    result = _with(document, _keys(_paths(kind).replicas), replicas)
    seen = metadata.get("resourceVersion")
    managed = object_record(_managed(document), record, replicas=_claimed(kind), api_version=kind.api_version)
    return result | {
        "metadata": document["metadata"] | {"managedFields": managed} | ({"resourceVersion": seen} if seen else {})
    }


def _replicas(scale: JsonObject) -> int:
    found: int = (scale.get("spec") or {}).get("replicas", 0)
    return found


def _managed(document: JsonObject) -> list[JsonObject]:
    return document["metadata"].get("managedFields") or []


def _claimed(kind: Kind) -> FieldSet:
    """Where the number of replicas is, as a set of fields."""
    fields: FieldSet = {}
    for key in reversed(_keys(_paths(kind).replicas)):
        fields = {f"f:{key}": fields}
    return fields


def _paths(kind: Kind) -> ScalePaths:
    if kind.scale is None:
        raise LookupError(f"{kind.qualified} has no scale")
    return kind.scale


def _keys(path: str) -> list[str]:
    return path.lstrip(".").split(".")


def _value(document: JsonObject, path: str) -> Any:
    value: Any = document
    for key in _keys(path):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _with(document: JsonObject, keys: list[str], value: Any) -> JsonObject:
    first, *rest = keys
    return document | {first: _with(document.get(first) or {}, rest, value) if rest else value}


def _formatted(selector: JsonObject) -> str:
    """A selector of labels as one line."""
    terms = [f"{key}={value}" for key, value in sorted(selector.get("matchLabels", {}).items())]
    for one in sorted(selector.get("matchExpressions", ()), key=lambda one: str(one["key"])):
        values = f" ({','.join(sorted(one.get('values', ())))})"
        operators = {"In": f"{one['key']} in{values}", "NotIn": f"{one['key']} notin{values}"}
        operators |= {"Exists": one["key"], "DoesNotExist": f"!{one['key']}"}
        terms.append(operators[one["operator"]])
    return ",".join(terms)
