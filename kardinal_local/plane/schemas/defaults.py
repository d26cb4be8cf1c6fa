"""Validate the defaults of a schema against the schema: a bad one would make every object invalid.

Each is pruned, judged and put to the rules like a value an author wrote, at the path of its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import invalid
from kardinal_local.plane.schemas.correlation import ABSENT
from kardinal_local.plane.schemas.embedded import compile_embedded
from kardinal_local.plane.schemas.judging import compile_judge
from kardinal_local.plane.schemas.rules import compile_rules
from kardinal_local.plane.schemas.shaping import Report, compile_shape
from kardinal_local.plane.schemas.structural import below

__all__ = ["default_causes"]


def default_causes(schema: JsonObject, at: str, *, root: bool = True) -> Iterator[Cause]:
    """What is wrong with the defaults of a schema; those below additionalProperties do not count."""
    if schema.get("default") is not None and not root:
        yield from _causes(schema, f"{at}.default")
    if isinstance(schema.get("items"), dict):
        yield from default_causes(schema["items"], f"{at}.items", root=False)
    for name, child in (schema.get("properties") or {}).items():
        yield from default_causes(child, f"{at}.properties[{name}]", root=False)


def _causes(schema: JsonObject, at: str) -> list[Cause]:
    default: Any = schema["default"]
    report = Report()
    compile_shape({key: value for key, value in schema.items() if key != "default"}).shaped(default, None, report)
    causes = [invalid(at, default, "must not have unknown fields")] if report.unknown else []
    embedded = compile_embedded(schema)
    found = list(embedded.find(default)) if embedded is not None else []
    if not found:
        compile_judge(schema).judge(default, ABSENT, "", found)
    if not found:
        found += compile_rules(schema).judge(default, old=None).causes
    return causes + [below(cause, at) for cause in found]
