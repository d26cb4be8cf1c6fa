"""Whole objects inside an object (`x-kubernetes-embedded-resource`): they say what they are.

An embedded resource carries apiVersion and kind, and its metadata follows the rules of any metadata as far as a client
notices. Only the paths that lead to one are compiled. Design: local-plane.md 2.3 (CRDs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause
from kardinal.localplane.schemas.causes import MapKey, Path, invalid, render, required
from kardinal.localplane.schemas.keywords import EMBEDDED
from kardinal.localplane.schemas.names import label_1035_problems

__all__ = ["Embedded", "compile_embedded"]


@dataclass(frozen=True, slots=True)
class Embedded:
    """A schema node that is an embedded resource, or on the way to one."""

    resource: bool
    fields: Mapping[str, Embedded]
    additional: Embedded | None
    items: Embedded | None

    def find(self, value: Any, path: Path = None) -> Iterator[Cause]:
        """What keeps an embedded object from being one."""
        if value.__class__ is dict:
            if self.resource:
                yield from _type_meta(value, path)
            for key, item in value.items():
                if key in self.fields:
                    yield from self.fields[key].find(item, (path, key))
                elif self.additional is not None:
                    yield from self.additional.find(item, (path, MapKey(key)))
        elif value.__class__ is list and self.items is not None:
            for index, item in enumerate(value):
                yield from self.items.find(item, (path, index))


def _type_meta(value: JsonObject, path: Path) -> Iterator[Cause]:
    for key in ("apiVersion", "kind"):
        field = render((path, key))
        if key not in value:
            yield required(field)
        elif not isinstance(value[key], str):
            yield invalid(field, value[key], "must be a string")
        elif not value[key]:
            yield invalid(field, value[key], "must not be empty")
        elif key == "apiVersion" and value[key].count("/") > 1:
            yield invalid(field, value[key], f"unexpected GroupVersion string: {value[key]}")
        elif key == "kind" and (problems := label_1035_problems(value[key].lower())):
            words = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield invalid(field, value[key], words)
    metadata = value.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    yield from _name(name if isinstance(name, str) else "", render((path, "metadata")))


def _name(name: str, field: str) -> Iterator[Cause]:
    problems = [f"may not be '{name}'"] if name in {".", ".."} else []
    problems += [f"may not contain '{char}'" for char in "/%" if char in name and not problems]
    for problem in problems:
        yield invalid(f"{field}.name", name, problem)


def compile_embedded(schema: JsonObject, *, root: bool = False) -> Embedded | None:
    """The node of a schema; None when nothing in it embeds an object."""
    fields = {
        name: node
        for name, child in (schema.get("properties") or {}).items()
        if (node := compile_embedded(child)) is not None
    }
    extra, items = schema.get("additionalProperties"), schema.get("items")
    additional = compile_embedded(extra) if isinstance(extra, dict) else None
    inner = compile_embedded(items) if isinstance(items, dict) else None
    resource = bool(schema.get(EMBEDDED)) and not root
    if not resource and not fields and additional is None and inner is None:
        return None
    return Embedded(resource, fields, additional, inner)
