"""Field managers: the entries of `metadata.managedFields`.

A claim is one entry: a manager, its operation (Apply or Update), the endpoint it wrote to, and the fields it owns. An
applier has one entry per name and endpoint, whatever version it writes; an updater has one per version too. Entries
come from clients as well, which may rewrite them: what cannot be read in full is as if it had not been sent.

A claim that is not changed is written back as it was read, so that unchanged objects stay equal byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from kardinal_local.plane.apply.fieldsets import FieldSet, decoded, difference, ordered, union
from kardinal_local.plane.documents import JsonObject

__all__ = ["Claim", "capped", "claims_from", "claims_of_client", "record"]

MOST_UPDATERS: Final = 10
_OLD: Final = "ancient-changes"


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

    @property
    def owner_key(self) -> tuple[str, str, str, str]:
        """Return what identifies the owner; the version is no part of it for appliers."""
        version = "" if self.operation == "Apply" else self.api_version
        return (self.manager, self.operation, version, self.subresource)

    def claims_nothing_new(self, before: Claim | None) -> bool:
        """Whether the entry would say what the one before said; an empty one says nothing."""
        if before is None:
            return not self.fields
        return before.fields == self.fields and before.api_version == self.api_version

    def without(self, *gone: FieldSet) -> Claim:
        rest = self.fields
        for fields in gone:
            rest = difference(rest, fields)
        return self.owning(rest)

    def owning(self, fields: FieldSet) -> Claim:
        """The claim with other fields; itself when they are the same."""
        same = fields is self.fields or fields == self.fields
        return self if same else replace(self, fields=fields, entry=None)

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


def claims_from(stored: list[JsonObject]) -> list[Claim]:
    """The claims that this server wrote, the last of each owner."""
    claims = [_claim(entry, entry["fieldsV1"]) for entry in stored]
    return list({claim.owner_key: claim for claim in claims}.values())


def claims_of_client(given: Any) -> list[Claim]:
    """The claims in a list of entries, the last of each owner; none when one of them cannot be read."""
    claims = {}
    for entry in given if isinstance(given, list) else ():
        if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
            return []
        fields = decoded(entry.get("fieldsV1") or {})
        if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1" or fields is None:
            return []
        claim = _claim(entry, fields)
        claims[claim.owner_key] = claim
    return list(claims.values())


def _claim(entry: JsonObject, fields: FieldSet) -> Claim:
    return Claim(
        manager=entry.get("manager", ""),
        operation=entry["operation"],
        api_version=entry["apiVersion"],
        subresource=entry.get("subresource", ""),
        fields=fields,
        time=entry.get("time"),
        entry=entry if fields is entry.get("fieldsV1") else None,
    )


def record(claims: Iterable[Claim]) -> list[JsonObject]:
    """The entries in the order of the real server; a manager that owns nothing is forgotten."""
    held = [claim for claim in claims if claim.fields]
    held.sort(
        key=lambda claim: (claim.operation, claim.time or "", claim.manager, claim.api_version, claim.subresource)
    )
    return [claim.encoded() for claim in held]


def capped(claims: list[Claim]) -> list[Claim]:
    """Limit the updaters to ten: the oldest of each version become one, under a name of its own."""
    updaters = [claim for claim in claims if claim.operation == "Update" and claim.fields]
    excess = len(updaters) - MOST_UPDATERS
    if excess <= 0:
        return claims
    updaters.sort(key=lambda claim: (claim.time or "", claim.manager, claim.api_version, claim.subresource))
    held = {claim.owner_key: claim for claim in claims}
    first_of: dict[str, Claim] = {}
    for claim in updaters:
        if excess <= 0:
            break
        first = first_of.setdefault(claim.api_version, claim)
        if first is claim:
            continue
        bucket = Claim(_OLD, "Update", claim.api_version, "", {})
        old = held.get(bucket.owner_key) or held.pop(first.owner_key)
        held.pop(claim.owner_key, None)
        held[bucket.owner_key] = replace(bucket, fields=union(claim.fields, old.fields), time=claim.time)
        excess -= 1
    return list(held.values())
