"""A custom kind with every shape that server-side apply knows."""

from __future__ import annotations

import re

from tests.local.contract.examples import JsonObject
from tests.local.contract.wire import Api

__all__ = ["define_things", "shortly", "thing"]

STRING: JsonObject = {"type": "string"}
PORT: JsonObject = {
    "type": "object",
    "required": ["port"],
    "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": STRING},
}
SPEC: JsonObject = {
    "type": "object",
    "properties": {
        "colour": STRING,
        "size": {"type": "integer", "default": 3},
        "share": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True},
        "list": {"type": "array", "items": STRING},
        "tags": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "items": PORT,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        },
        "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": STRING},
        "config": {"type": "object", "additionalProperties": STRING},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
STATUS: JsonObject = {"type": "object", "properties": {"phase": STRING, "config": SPEC["properties"]["config"]}}


def shortly(value: object) -> str:
    """The id of a parameter: what is in it, without the brackets."""
    return re.sub(r"\W+", "-", str(value)).strip("-")[:48] or "empty"


async def define_things(api: Api) -> str:
    """Have the kind served; the path of its objects."""
    schema = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
    definition = api.widgets(schema={"openAPIV3Schema": schema})
    definition["metadata"]["name"] = f"things.{api.group}"
    definition["spec"]["names"] = {"plural": "things", "kind": "Thing"}
    await api.define(definition)
    return api.path("things", group=api.group)


def thing(api: Api, **spec: object) -> JsonObject:
    """The object `a`."""
    return {"apiVersion": f"{api.group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}
