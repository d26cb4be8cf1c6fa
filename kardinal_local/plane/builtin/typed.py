"""Offer the built-in kinds to the rest of the server: their schemas, decoding and validation, made on first use.

Everything is found by name and made on first use, so a kind that is not used costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardinal_local.plane.builtin import definitions
from kardinal_local.plane.builtin.decoding import blank, decode
from kardinal_local.plane.builtin.preparation import prepare
from kardinal_local.plane.builtin.types import struct
from kardinal_local.plane.builtin.validation import notes, problems
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause

__all__ = ["BuiltinType"]


@dataclass(frozen=True, slots=True)
class BuiltinType:
    """The Go type of one kind."""

    group: str
    version: str
    kind: str

    @property
    def name(self) -> str:
        return definitions.schema_name(self.group, self.version, self.kind)

    @property
    def schema(self) -> JsonObject:
        return definitions.schema(self.name)

    def decode(self, document: JsonObject, *, converted: bool = False) -> tuple[JsonObject, list[str]]:
        decoded, unknown = decode(self.name, document, converted=converted)
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        return {"apiVersion": api_version, "kind": self.kind, **decoded}, unknown

    def stored(self, document: JsonObject) -> JsonObject:
        """The document as it is read again: bytes that were given as null are none then."""
        for name in struct(self.name).bytes_by_key:
            if None in (values := document.get(name, {})).values():
                document = document | {name: {key: value or "" for key, value in values.items()}}
        return document

    @property
    def blank(self) -> JsonObject:
        return blank(self.name)

    def prepare(self, document: JsonObject, *, old: JsonObject | None) -> None:
        prepare(self.group, self.kind, document, old=old)

    def problems(self, document: JsonObject, *, old: JsonObject | None) -> list[Cause]:
        return problems(self.group, self.kind, document, old=old)

    def notes(self, document: JsonObject) -> tuple[str, ...]:
        return notes(self.group, self.kind, document)
