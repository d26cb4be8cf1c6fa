"""Validate whole objects inside an object (`x-kubernetes-embedded-resource`).

An embedded resource carries apiVersion and kind, and its metadata follows the rules of any metadata. What is no type
meta and no metadata at all cannot be read, and is refused before anything is judged. Only the paths that lead to one
are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause, Unreadable
from kardinal_local.plane.metadata import finalizer_causes, shared_causes
from kardinal_local.plane.schemas.causes import MapKey, Path, invalid, render, required
from kardinal_local.plane.schemas.keywords import EMBEDDED
from kardinal_local.plane.schemas.names import label_1035_problems

__all__ = ["Embedded", "compile_embedded"]

_TYPE_META = frozenset({"apiVersion", "kind"})

Decode = Callable[[Any], JsonObject]
"""Metadata as its type has it; raises Unreadable."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A schema node that is an embedded resource, or on the way to one."""

    resource: bool
    fields: Mapping[str, Embedded]
    additional: Embedded | None
    items: Embedded | None

    def read(self, value: Any, decode: Decode, path: Path = None) -> Any:
        """The value with the metadata of each embedded object decoded; Unreadable names what cannot be."""
        if value.__class__ is list and self.items is not None:
            return [self.items.read(item, decode, (path, index)) for index, item in enumerate(value)]
        if value.__class__ is not dict:
            return value
        return {key: self._member(key, item, decode, path) for key, item in value.items()}

    def _member(self, key: str, item: Any, decode: Decode, path: Path) -> Any:
        if self.resource and key in _TYPE_META and not isinstance(item, str):
            raise Unreadable(_told(invalid(render((path, key)), item, "must be a string")))
        if self.resource and key == "metadata":
            try:
                return decode(item)
            except Unreadable as error:
                raise Unreadable(_told(invalid(render((path, key)), item, str(error)))) from None
        if (inner := self.fields.get(key)) is not None:
            return inner.read(item, decode, (path, key))
        return item if self.additional is None else self.additional.read(item, decode, (path, MapKey(key)))

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


def _told(cause: Cause) -> str:
    return f"{cause.field}: {cause.message}"


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
    if isinstance(metadata := value.get("metadata"), dict):
        at = render((path, "metadata"))
        well_typed = {name: member for name, member in metadata.items() if _is_typed(name, member)}
        yield from _name(well_typed.get("name", ""), at)
        yield from shared_causes(well_typed, at=at)
        yield from finalizer_causes(well_typed, at=at)


def _is_typed(name: str, member: Any) -> bool:
    """Whether it can be judged, which only a default may fail: objects have been read."""
    match name:
        case "labels" | "annotations":
            return isinstance(member, dict) and all(isinstance(value, str) for value in member.values())
        case "ownerReferences":
            return isinstance(member, list) and all(isinstance(owner, dict) for owner in member)
        case "finalizers":
            return isinstance(member, list) and all(isinstance(finalizer, str) for finalizer in member)
    return isinstance(member, str)


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
