"""Write the schemas of the built-in kinds from a real server's OpenAPI: `python -m hack.kube.builtin_schemas`.

A real server is started and asked for the OpenAPI v3 document of every group and version that the local plane
serves. One file gets what decides how an object is handled: types, formats, enumerations, defaults, required fields,
how lists and maps merge. The descriptions, which only people read and which are five sixths of the bytes, go into
another, so that a server which nobody asks to explain anything never opens it.

The results have one schema per line, sorted, so that a change of Kubernetes is a readable diff.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from hack.kube.asking import Ask, real_server
from kardinal.localplane.builtin import BUILTIN_KINDS
from kardinal.localplane.builtin.definitions import schema_name
from kardinal.localplane.security import REVIEW_KINDS

__all__ = ["OUTPUT", "published", "write"]

OUTPUT = Path(__file__).parents[2] / "kardinal" / "localplane" / "builtin"
PREFIX = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
# Bodies of subresources and of deletions, which belong to no kind of their own.
EXTRA = (f"{META}DeleteOptions", "io.k8s.api.authentication.v1.TokenRequest", "io.k8s.api.autoscaling.v1.Scale")
DROPPED = frozenset({"description", "x-kubernetes-group-version-kind"})


def published(ask: Ask) -> dict[str, Any]:
    """Every schema that the served kinds are made of, by name, as it is published."""
    kinds = (*BUILTIN_KINDS, *REVIEW_KINDS)
    documents = {f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}" for kind in kinds}
    known: dict[str, Any] = {}
    for document in sorted(documents | {"apis/autoscaling/v1"}):
        known |= ask(f"/openapi/v3/{document}")["components"]["schemas"]
    return _closure([*(schema_name(kind.group, kind.version, kind.kind) for kind in kinds), *EXTRA], known)


def write(rows: Mapping[str, bytes], output: Path) -> None:
    output.write_bytes(b"".join(b"%s %s\n" % (name.encode(), rows[name]) for name in sorted(rows)))


def _closure(roots: Iterable[str], known: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = known[name]
            waiting.extend(_references(known[name]))
    return found


def _stripped(schema: Any) -> Any:
    """The schema without descriptions; a field may be called one."""
    if not isinstance(schema, dict):
        return schema
    result = {key: value for key, value in schema.items() if key not in DROPPED}
    if "properties" in result:
        result["properties"] = {name: _stripped(field) for name, field in sorted(result["properties"].items())}
    for keyword in ("items", "additionalProperties"):
        if keyword in result:
            result[keyword] = _stripped(result[keyword])
    if "allOf" in result:
        [only] = result.pop("allOf")
        result = {**only, **result}
    return result


def _described(schema: Any) -> dict[str, str]:
    """The description of a schema, under no name, and those of its fields."""
    described = {"": schema, **schema.get("properties", {})}
    return {name: field["description"] for name, field in sorted(described.items()) if "description" in field}


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix(PREFIX)
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def main() -> None:
    with real_server() as ask:
        found = published(ask)
    write({name: orjson.dumps(_stripped(schema)) for name, schema in found.items()}, OUTPUT / "schemas.jsonl")
    write({name: orjson.dumps(_described(schema)) for name, schema in found.items()}, OUTPUT / "descriptions.jsonl")
    print(f"{len(found)} schemas in {OUTPUT}", file=sys.stderr)


if __name__ == "__main__":
    main()
