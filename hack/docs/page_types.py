"""Write the TypeScript types of the page from its OpenAPI schemas: `python -m hack.docs.page_types FILE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args

from kardinal_controller.ui import model
from kardinal_controller.ui.openapi import document

__all__ = ["types"]

INTRODUCTION = """\
// Generated from kardinal_controller/ui/model/ by `make docs`. Do not edit.
// A field without a value is absent, never null. Times are ISO 8601 in UTC.
"""

_ALIASES = {get_args(model.Tone): "Tone", get_args(model.Need): "Need"}
_SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}


def types() -> str:
    """Return the file `types.ts`."""
    parts = [INTRODUCTION]
    for choices, alias in _ALIASES.items():
        parts.append(f"\nexport type {alias} = {_choice(choices)};\n")
    for name, schema in document("")["components"]["schemas"].items():
        parts.append(f"\n{_comment(schema)}export interface {name} {{\n")
        for field, each in schema["properties"].items():
            mark = "" if field in schema["required"] else "?"
            parts.append(f"  readonly {field}{mark}: {_type(each)};\n")
        parts.append("}\n")
    return "".join(parts)


def _comment(schema: dict[str, Any]) -> str:
    lines = schema.get("description", "").splitlines()
    if len(lines) <= 1:
        return "".join(f"/** {line} */\n" for line in lines)
    return "\n".join(["/**", *(f" * {line}".rstrip() for line in lines), " */", ""])


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(_type(each) for each in schema["anyOf"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        choices = tuple(schema["enum"])
        return _ALIASES.get(choices, _choice(choices))
    if schema["type"] == "array":
        return f"ReadonlyArray<{_type(schema['items'])}>"
    if schema["type"] == "object":
        return f"Readonly<Record<string, {_type(schema['additionalProperties'])}>>"
    return _SIMPLE[schema["type"]]


def _choice(values: tuple[str, ...]) -> str:
    return " | ".join(json.dumps(value) for value in values)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(types())
