"""Write the schemas of the built-in kinds from a real server's OpenAPI: `python -m hack.kube.builtin_schemas`.

A real server is started and asked for the OpenAPI v3 document of every group and version that the local plane
serves. What is kept is what decides how an object is handled: types, formats, enumerations, defaults, required fields,
how lists and maps merge. Descriptions are left out; they are texts of Kubernetes, and five sixths of the bytes.

The result is one schema per line, sorted, so that a change of Kubernetes is a readable diff.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

from hack.kube.asking import Ask, real_server
from kardinal_local.plane.builtin import BUILTIN_KINDS
from kardinal_local.plane.builtin.definitions import schema_name
from kardinal_local.plane.security import REVIEW_KINDS

__all__ = ["OUTPUT", "schemas", "write"]

OUTPUT = Path(__file__).parents[2] / "kardinal_local" / "plane" / "builtin" / "schemas.jsonl"
PREFIX = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
# Bodies of subresources and of deletions, which belong to no kind of their own.
EXTRA = (f"{META}DeleteOptions", "io.k8s.api.authentication.v1.TokenRequest", "io.k8s.api.autoscaling.v1.Scale")
DROPPED = frozenset({"description", "x-kubernetes-group-version-kind"})


def schemas(ask: Ask) -> dict[str, Any]:
    """Every schema that the served kinds are made of, by name."""
    kinds = (*BUILTIN_KINDS, *REVIEW_KINDS)
    documents = {f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}" for kind in kinds}
    known: dict[str, Any] = {}
    for document in sorted(documents | {"apis/autoscaling/v1"}):
        known |= ask(f"/openapi/v3/{document}")["components"]["schemas"]
    return _closure([*(schema_name(kind.group, kind.version, kind.kind) for kind in kinds), *EXTRA], known)


def write(lines: Iterable[bytes], output: Path) -> None:
    output.write_bytes(b"".join(line + b"\n" for line in lines))


def _closure(roots: Iterable[str], known: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _stripped(known[name])
            waiting.extend(_references(found[name]))
    return found


def _stripped(schema: Any) -> Any:
    """Return the schema without descriptions; a field may be called one."""
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


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix(PREFIX)
        for value in schema.values():
            yield from _references(value)


def main() -> None:
    with real_server() as ask:
        found = schemas(ask)
    write((name.encode() + b" " + orjson.dumps(found[name]) for name in sorted(found)), OUTPUT)
    print(f"{len(found)} schemas in {OUTPUT}", file=sys.stderr)


if __name__ == "__main__":
    main()
