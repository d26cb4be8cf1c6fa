"""One kind and two ways to change it, shared by the tests of server-side apply."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

from kardinal_local.plane.apply.fieldsets import FieldSet, paths
from kardinal_local.plane.apply.ssa import Writer, apply, track_update

__all__ = ["LATER", "NOW", "SCHEMA", "applied", "owners", "thing", "times", "updated"]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
STRING = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "a": STRING,
                "b": STRING,
                "replicas": {"type": "integer"},
                "list": {"type": "array", "items": STRING},
                "tags": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": STRING,
                        },
                    },
                },
                "things": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["id"],
                    "items": {"type": "object", "properties": {"id": STRING, "name": STRING}},
                },
                "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": STRING},
                "config": {"type": "object", "additionalProperties": STRING},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"phase": STRING}},
    },
}


def thing(spec: Any = None, *, status: Any = None, **metadata: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t", **metadata}}
    if spec is not None:
        obj["spec"] = spec
    if status is not None:
        obj["status"] = status
    return obj


def applied(
    live: Any, config: Any, *, by: str = "a", force: bool = False, subresource: str = "", now: datetime = NOW
) -> Any:
    before = copy.deepcopy((live, config))
    result = apply(live, config, by=_writer(by, subresource, now), force=force, schema=SCHEMA)
    assert (live, config) == before
    return result


def updated(live: Any, new: Any, *, by: str = "u", subresource: str = "", now: datetime = NOW) -> Any:
    before = copy.deepcopy((live, new))
    managed = track_update(live, new, by=_writer(by, subresource, now), schema=SCHEMA)
    assert (live, new) == before
    return {**new, "metadata": {**new["metadata"], "managedFields": managed}}


def _writer(manager: str, subresource: str, now: datetime) -> Writer:
    ignored: FieldSet = {"f:metadata": {}, "f:spec": {}} if subresource else {"f:status": {}}
    return Writer(manager, now, subresource, ignored)


def owners(obj: Any) -> dict[tuple[str, str], list[str]]:
    return {
        (entry["manager"], entry["operation"] + (":" + entry["subresource"] if "subresource" in entry else "")): sorted(
            paths(entry["fieldsV1"])
        )
        for entry in obj["metadata"]["managedFields"]
    }


def times(obj: Any) -> dict[str, str]:
    return {entry["manager"]: entry["time"] for entry in obj["metadata"]["managedFields"]}
