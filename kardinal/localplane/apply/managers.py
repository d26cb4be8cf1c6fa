"""Field managers: the entries of `metadata.managedFields`.

A claim is one entry: a manager, the operation by which it speaks, the endpoint it spoke to, and the fields it owns. An
applier is one voice per name and endpoint, whatever version it speaks; an updater is one per version too. A claim that
is not changed is written back as it was read, so that unchanged objects stay equal byte by byte.
Design: local-plane.md 2.2 (items 6 and 7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import orjson

from kardinal.localplane.apply.fieldsets import FieldSet, difference, ordered
from kardinal.localplane.documents import JsonObject

__all__ = ["Claim", "claims_from", "record"]


@dataclass(frozen=True, slots=True)
class Claim:
    """Who owns which fields, since when; `entry` is the form in which it was read, while that still holds."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    fields: FieldSet
    time: str | None = None
    entry: JsonObject | None = None

    @property
    def shown(self) -> str:
        """As a conflict names the manager."""
        name = orjson.dumps(self.manager).decode()
        if self.subresource:
            name = f"{name} with subresource {orjson.dumps(self.subresource).decode()}"
        return name if self.operation == "Apply" else f"{name} using {self.api_version}"

    def same_voice(self, other: Claim) -> bool:
        """Whether both entries are one manager's: appliers are the same in every version."""
        return (
            (self.manager, self.operation, self.subresource) == (other.manager, other.operation, other.subresource)
        ) and (self.operation == "Apply" or self.api_version == other.api_version)

    def claims_nothing_new(self, before: Claim | None) -> bool:
        """Whether the entry would say what the one before said; an empty one says nothing."""
        if before is None:
            return not self.fields
        return before.fields == self.fields and before.api_version == self.api_version

    def without(self, fields: FieldSet) -> Claim:
        rest = difference(self.fields, fields)
        return self if rest == self.fields else replace(self, fields=rest, entry=None)

    def encoded(self) -> JsonObject:
        if self.entry is not None:
            return self.entry
        entry: JsonObject = {
            "apiVersion": self.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": ordered(self.fields),
            "manager": self.manager,
            "operation": self.operation,
        }
        if self.subresource:
            entry["subresource"] = self.subresource
        if self.time is not None:
            entry["time"] = self.time
        return entry


def claims_from(managed_fields: Any) -> list[Claim]:
    """The entries that can be read; one that cannot claims nothing."""
    return [
        Claim(
            manager=str(entry.get("manager", "")),
            operation=entry["operation"],
            api_version=str(entry.get("apiVersion", "")),
            subresource=str(entry.get("subresource", "")),
            fields=entry["fieldsV1"],
            time=entry.get("time"),
            entry=entry,
        )
        for entry in managed_fields or ()
        if isinstance(entry, dict)
        and entry.get("operation") in ("Apply", "Update")
        and isinstance(entry.get("fieldsV1"), dict)
    ]


def record(claims: Iterable[Claim]) -> list[JsonObject]:
    """The entries in the order of the real server; a manager that owns nothing is forgotten."""
    held = [claim for claim in claims if claim.fields]
    held.sort(
        key=lambda claim: (claim.operation, claim.time or "", claim.manager, claim.api_version, claim.subresource)
    )
    return [claim.encoded() for claim in held]
