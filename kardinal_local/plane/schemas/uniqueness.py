"""Find the elements that occur twice in sets and keyed lists.

Only the paths that lead to such a list are compiled; a schema without any costs nothing. The second occurrence is
reported and later ones are not, as on the real server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import MapKey, Path, duplicate, invalid, render
from kardinal_local.plane.schemas.keywords import LIST_KEYS, LIST_TYPE

__all__ = ["Uniqueness", "compile_uniqueness"]


@dataclass(frozen=True, slots=True)
class Uniqueness:
    """A schema node with a set or keyed list, or on the way to one."""

    kind: str
    keys: tuple[str, ...]
    fields: Mapping[str, Uniqueness]
    additional: Uniqueness | None
    items: Uniqueness | None

    def find(self, value: Any, path: Path = None) -> Iterator[Cause]:
        """A cause for every element that is there twice."""
        if value.__class__ is dict:
            if self.additional is not None:
                for key, item in value.items():
                    yield from self.additional.find(item, (path, MapKey(key)))
            for key, child in self.fields.items():
                if key in value:
                    yield from child.find(value[key], (path, key))
        elif value.__class__ is list:
            if self.kind == "set":
                yield from _repeated(value, path)
            elif self.kind == "map":
                yield from self._repeated_keys(value, path)
            if self.items is not None:
                for index, item in enumerate(value):
                    yield from self.items.find(item, (path, index))

    def _repeated_keys(self, items: list[Any], path: Path) -> Iterator[Cause]:
        for index, item in enumerate(items):
            if item is not None and item.__class__ is not dict:
                words = "must be an object for an array of list-type map"
                yield invalid(render((path, index)), item, words)
                return
        identities = [{key: item[key] for key in self.keys if key in item} if item else {} for item in items]
        yield from _repeated(identities, path)


def _repeated(identities: list[Any], path: Path) -> Iterator[Cause]:
    seen: dict[bytes, int] = {}
    for index, identity in enumerate(identities):
        frozen = orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)
        seen[frozen] = seen.get(frozen, 0) + 1
        if seen[frozen] == 2:
            yield duplicate(render((path, index)), identity)


def compile_uniqueness(schema: JsonObject) -> Uniqueness | None:
    """The node of a schema; None when no list below it is a set or keyed."""
    fields = {
        name: node
        for name, child in (schema.get("properties") or {}).items()
        if (node := compile_uniqueness(child)) is not None
    }
    extra, items = schema.get("additionalProperties"), schema.get("items")
    additional = compile_uniqueness(extra) if isinstance(extra, dict) else None
    inner = compile_uniqueness(items) if isinstance(items, dict) else None
    kind = schema.get(LIST_TYPE) or "atomic"
    if kind == "atomic" and not fields and additional is None and inner is None:
        return None
    return Uniqueness(kind, tuple(schema.get(LIST_KEYS) or ()), fields, additional, inner)
