"""The columns of the built-in kinds, as the real server's printers show them.

Each printer is a function from an object and the time to one cell. Kinds without an entry show name and age.
Design: local-plane.md 2.3 (built-ins).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.tables.columns import AGE, NAME, Cell, Column, age

__all__ = ["builtin_columns"]


def builtin_columns(group: str, kind: str) -> tuple[Column, ...]:
    """The columns of a built-in kind in the order in which they are shown."""
    return _COLUMNS.get((group, kind), (NAME, AGE))


def _text(name: str, cell: Cell, *, wide: bool = False, description: str = "") -> Column:
    return Column(name, "string", cell, description=description, priority=1 if wide else 0)


def _path(*keys: str, default: Any = "<none>") -> Cell:
    """The value at the end of some keys, or a stand-in."""

    def cell(obj: JsonObject, _: datetime) -> Any:
        value: Any = obj
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return default if value in (None, "") else value

    return cell


def _count(*keys: str) -> Cell:
    """How many entries the maps or lists under some fields have together."""
    return lambda obj, _: sum(len(obj.get(key) or ()) for key in keys)


def _created(obj: JsonObject, _: datetime) -> Any:
    return obj["metadata"].get("creationTimestamp", "<unknown>")


def _ready(obj: JsonObject, _: datetime) -> str:
    return f"{_number(obj, 'status', 'readyReplicas')}/{_number(obj, 'spec', 'replicas')}"


def _number(obj: JsonObject, part: str, key: str) -> int:
    value = (obj.get(part) or {}).get(key)
    return value if isinstance(value, int) else 0


def _replicas(name: str, part: str, key: str) -> Column:
    return Column(name, "integer", lambda obj, _: _number(obj, part, key))


def _containers(key: str) -> Cell:
    def cell(obj: JsonObject, _: datetime) -> str:
        pod = obj.get("spec", {}).get("template", {}).get("spec", {})
        return ",".join(str(container.get(key, "")) for container in pod.get("containers") or ())

    return cell


def _selector(obj: JsonObject, _: datetime) -> str:
    selector = obj.get("spec", {}).get("selector") or {}
    labels = selector.get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


def _seen(obj: JsonObject, now: datetime) -> str:
    """When an event was seen last: a series and the old and new APIs each keep that elsewhere."""
    moment = (
        (obj.get("series") or {}).get("lastObservedTime")
        or obj.get("lastTimestamp")
        or obj.get("deprecatedLastTimestamp")
        or obj.get("eventTime")
    )
    return age(moment, now)


def _first_seen(obj: JsonObject, now: datetime) -> str:
    return age(obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime"), now)


def _about(obj: JsonObject, _: datetime) -> str:
    target = obj.get("involvedObject") or obj.get("regarding") or {}
    return f"{str(target.get('kind', '')).lower()}/{target.get('name', '')}"


def _part(obj: JsonObject, _: datetime) -> str:
    return str((obj.get("involvedObject") or obj.get("regarding") or {}).get("fieldPath", ""))


def _source(obj: JsonObject, _: datetime) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = obj.get("reportingComponent") or obj.get("reportingController") or source.get("component", "")
    host = obj.get("reportingInstance") or source.get("host", "")
    return f"{component}, {host}" if host else component


def _message(obj: JsonObject, _: datetime) -> str:
    return str(obj.get("message") or obj.get("note") or "").strip()


def _times(obj: JsonObject, _: datetime) -> int:
    count = (obj.get("series") or {}).get("count") or obj.get("count") or obj.get("deprecatedCount")
    return count if isinstance(count, int) else 1


def _ports(obj: JsonObject, _: datetime) -> str:
    ports = obj.get("spec", {}).get("ports") or ()
    return ",".join(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in ports) or "<none>"


def _role(obj: JsonObject, _: datetime) -> str:
    role = obj.get("roleRef") or {}
    return f"{role.get('kind')}/{role.get('name')}"


_CONTAINERS = _text("Containers", _containers("name"), wide=True, description="Names of the containers.")
_IMAGES = _text("Images", _containers("image"), wide=True, description="Images of the containers.")
_SELECTOR = _text("Selector", _selector, wide=True, description="Labels of the pods.")

_EVENT: Final = (
    _text("Last Seen", _seen, description="Time since this happened last."),
    _text("Type", _path("type", default=""), description="Normal or Warning."),
    _text("Reason", _path("reason", default=""), description="Why it happened, in one word."),
    _text("Object", _about, description="What it is about."),
    _text("Subobject", _part, wide=True, description="The part of the object it is about."),
    _text("Source", _source, wide=True, description="Who reported it."),
    _text("Message", _message, description="What happened."),
    _text("First Seen", _first_seen, wide=True, description="Time since this happened first."),
    Column("Count", "integer", _times, priority=1, description="How often it happened."),
    Column("Name", "string", NAME.cell, format="name", priority=1, description=NAME.description),
)

_COLUMNS: Final[dict[tuple[str, str], tuple[Column, ...]]] = {
    ("", "Namespace"): (NAME, _text("Status", _path("status", "phase", default="Active")), AGE),
    ("", "ConfigMap"): (NAME, Column("Data", "integer", _count("data", "binaryData")), AGE),
    ("", "Secret"): (
        NAME,
        _text("Type", _path("type", default="Opaque")),
        Column("Data", "integer", _count("data")),
        AGE,
    ),
    ("", "Service"): (
        NAME,
        _text("Type", _path("spec", "type", default="ClusterIP")),
        _text("Cluster-IP", _path("spec", "clusterIP")),
        _text("External-IP", _path("spec", "externalName")),
        _text("Port(s)", _ports),
        AGE,
    ),
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("coordination.k8s.io", "Lease"): (NAME, _text("Holder", _path("spec", "holderIdentity", default="")), AGE),
    ("apps", "Deployment"): (
        NAME,
        _text("Ready", _ready, description="Ready pods of the wanted ones."),
        _replicas("Up-to-date", "status", "updatedReplicas"),
        _replicas("Available", "status", "availableReplicas"),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    ("apps", "ReplicaSet"): (
        NAME,
        _replicas("Desired", "spec", "replicas"),
        _replicas("Current", "status", "replicas"),
        _replicas("Ready", "status", "readyReplicas"),
        AGE,
        _CONTAINERS,
        _IMAGES,
        _SELECTOR,
    ),
    ("apps", "StatefulSet"): (NAME, _text("Ready", _ready), AGE, _CONTAINERS, _IMAGES),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        NAME,
        Column("Created At", "date", _created, description="When the definition was created."),
    ),
    ("rbac.authorization.k8s.io", "Role"): (NAME, Column("Created At", "date", _created)),
    ("rbac.authorization.k8s.io", "ClusterRole"): (NAME, Column("Created At", "date", _created)),
    ("rbac.authorization.k8s.io", "RoleBinding"): (NAME, _text("Role", _role), AGE),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (NAME, _text("Role", _role), AGE),
}
