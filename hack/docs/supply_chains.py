"""Write the reference of supply chains: `python -m hack.docs.supply_chains docs/supply-chains-reference.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kardinal_supplychain.api.crds import definitions

__all__ = ["reference"]

HEAD = """# Reference of supply chains

The fields of `carto.run/v1alpha1` that people write, generated from the models by `make docs`. Their meaning is in
[Supply chains](supply-chains.md).
"""


def reference() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for definition in definitions() for line in _kind(definition))])


def _kind(definition: dict[str, Any]) -> Iterator[str]:
    spec = definition["spec"]
    (version,) = spec["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    yield f"## {spec['names']['kind']}\n"
    scope = "in a namespace" if spec["scope"] == "Namespaced" else "cluster-scoped"
    sentence = schema["description"].partition(": ")[2]
    listed = f"`kubectl get {spec['names']['shortNames'][0]}` lists it"
    yield f"{sentence[:1].upper()}{sentence[1:]} It is {scope}; {listed}.\n"
    yield "| field | type | |"
    yield "|---|---|---|"
    for path, field, is_required in _fields(schema["properties"]["spec"], ""):
        needed = " Required." if is_required else ""
        rules = "".join(f" Rule: {rule['message']}." for rule in field.get("x-kubernetes-validations", ()))
        yield f"| `{path}` | {_type(field)} | {field['description'].replace('|', chr(92) + '|')}{needed}{rules} |"
    yield ""


def _fields(schema: dict[str, Any], before: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield path, schema, and whether it is required, of each field below a schema."""
    for name, field in schema.get("properties", {}).items():
        path = f"{before}{name}"
        inner = field.get("items", field)
        yield path, {**inner, **field}, name in schema.get("required", ())
        suffix = "[]." if "items" in field else "."
        yield from _fields(inner, f"{path}{suffix}")


def _type(field: dict[str, Any]) -> str:
    if "items" in field:
        inner = field["items"].get("type", "any")
        return f"list of {inner}s"
    if "additionalProperties" in field:
        return f"map of {field['additionalProperties'].get('type', 'any')}s"
    return str(field.get("type", "any JSON"))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference())
