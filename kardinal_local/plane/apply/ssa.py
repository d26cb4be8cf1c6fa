"""Apply a configuration on the server's side, and record who owns which field.

Every write leaves its mark in `metadata.managedFields`: an apply owns the fields its configuration names, any other
write owns the fields it added or changed. An apply that would change a field of another manager conflicts, unless
forced; a field that its manager stops applying is removed, unless another manager owns it too. The main object and its
status subresource are separate claims of one manager, and neither claims what the other endpoint alone may change.

What controllers rely on: an apply that changes nothing gives back the live object itself, times included, so that it
is no write. The trap: a merge can grow a list but never shrink it, so removal works from the previous claim alone;
without the claim of the last apply nothing is ever removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from kardinal_local.plane.apply.compare import Difference, compare, same
from kardinal_local.plane.apply.elements import NoElement
from kardinal_local.plane.apply.fieldsets import FieldSet, difference, intersection, paths, union, without_tops
from kardinal_local.plane.apply.last_applied import applied_before, synchronised
from kardinal_local.plane.apply.managers import Claim, capped, claims_from, claims_of_client, record
from kardinal_local.plane.apply.merge import merge
from kardinal_local.plane.apply.prune import prune
from kardinal_local.plane.apply.settled import settled
from kardinal_local.plane.apply.typed import NotTyped, check, field_set
from kardinal_local.plane.apply.types import Type, type_of
from kardinal_local.plane.documents import JsonObject, timestamp
from kardinal_local.plane.errors import ApplyConflict, ApplyError, Cause

__all__ = ["Writer", "apply", "track_update"]

_UNTRACKED: Final = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
)
_TOLD: Final = 1024 * 1024
"""Characters of the paths of all conflicts that are told: every one of them repeats the keys it leads through."""

_NOBODYS: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {".": {}, **{f"f:{name}": {} for name in _UNTRACKED}},
}


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, through which endpoint, when.

    `ignored`: what that endpoint leaves as it is. `versions`: those of the kind; a claim of another one is forgotten.
    `readable`: those in which a custom object can be read; a claim of another one spoils the whole record.
    `blank`: what is there before anything is said: the structs of a Go type, which no write adds.
    """

    manager: str
    now: datetime
    subresource: str = ""
    ignored: FieldSet = field(default_factory=dict)
    versions: frozenset[str] = frozenset()
    readable: frozenset[str] = frozenset()
    blank: JsonObject = field(default_factory=dict)

    def claim(self, operation: str, api_version: str, fields: FieldSet) -> Claim:
        return Claim(self.manager, operation, api_version, self.subresource, fields, timestamp(self.now))

    def knows(self, claim: Claim) -> bool:
        return not self.versions or claim.api_version in self.versions

    def heeded(self, change: Difference) -> Difference:
        return change.without(self.ignored)


def apply(
    live: JsonObject | None, applied: JsonObject, *, by: Writer, force: bool, schema: JsonObject | None
) -> JsonObject:
    """The object after the apply; `live` itself when nothing changes."""
    declared = type_of(schema)
    _check(applied, declared)
    named = field_set(applied, declared)
    wanted = without_tops(named, by.ignored)
    mine = by.claim("Apply", applied["apiVersion"], difference(wanted, _NOBODYS))
    if live is None:
        return _recorded(applied, [mine])

    known = _settled(claims_from(live["metadata"].get("managedFields") or []), by, declared)
    claims = known or _before_first_apply(live, by, declared)
    last = next((claim for claim in claims if claim.owner_key == mine.owner_key), None)
    others = [claim for claim in claims if claim is not last]

    merged = merge(live, applied, declared)
    if last is not None and last.fields != mine.fields:
        managed = [wanted, *(claim.fields for claim in others)]
        merged = prune(merged, declared, last=last.fields, managed=managed)
    change = Difference() if merged is live else by.heeded(compare(_tracked(live), _tracked(merged), declared))
    if change.taken and not force:
        allowed = applied_before(live, manager=by.manager, declared=declared)
        _refuse_conflicts(others, change.taken, allowed)
    if change:
        others = [claim.without(change.taken, change.removed) for claim in others]
    if merged is live or same(_unclaimed(merged), _unclaimed(live)):
        if known and mine.claims_nothing_new(last):
            return synchronised(live, applied, manager=by.manager)
        # Nothing is written but the claim, so it is as old as it was: a new one has no time.
        mine = replace(mine, time=last.time if last is not None else None)
    return synchronised(_recorded(merged, [*others, mine]), applied, manager=by.manager)


def track_update(
    live: JsonObject | None, new: JsonObject, *, by: Writer, schema: JsonObject | None
) -> list[JsonObject]:
    """The managedFields after a create, replace or patch that leaves the object as `new`."""
    claims = _base(live, new, by.subresource)
    if by.readable and any(claim.api_version not in by.readable for claim in claims):
        return []
    if live is not None and not claims:
        # This object was never claimed, or its claims were reset: only an apply begins anew.
        return []
    declared = type_of(schema)
    try:
        updated = _updated(live or by.blank, new, _settled(claims, by, declared), by=by, declared=declared)
    except NoElement:
        # A set of objects has elements that no step can name: such an object has no owner.
        return []
    return record(capped(updated))


def _updated(live: JsonObject, new: JsonObject, claims: list[Claim], *, by: Writer, declared: Type) -> list[Claim]:
    """The claims after an update: who changes a field owns it alone."""
    change = by.heeded(compare(_tracked(live), _tracked(new), declared))
    if not change:
        return claims
    claims = [claim.without(change.taken, change.removed) for claim in claims]
    fields = difference(change.taken, _NOBODYS)
    if fields:
        mine = by.claim("Update", new["apiVersion"], fields)
        earlier = next((claim for claim in claims if claim.owner_key == mine.owner_key), None)
        if earlier is not None:
            claims.remove(earlier)
            mine = replace(mine, fields=union(earlier.fields, fields))
        claims.append(mine)
    return claims


def _before_first_apply(live: JsonObject, by: Writer, declared: Type) -> list[Claim]:
    """Return the owner of an object that was never claimed."""
    return _updated(by.blank, live, [], by=replace(by, manager="before-first-apply"), declared=declared)


def _base(live: JsonObject | None, new: JsonObject, subresource: str) -> list[Claim]:
    """The claims a write starts from: on the main object a client may rewrite them or, with an empty list, reset."""
    stored = (live["metadata"].get("managedFields") if live is not None else None) or []
    given = new["metadata"].get("managedFields")
    if subresource or given is None or given == stored:
        return claims_from(stored)
    if given in ([], [{}]):
        return []
    return claims_of_client(given) or claims_from(stored)


def _settled(claims: list[Claim], by: Writer, declared: Type) -> list[Claim]:
    """The claims in the terms of today's schema: who owned parts of what has become one value owns the whole."""
    return [claim.owning(settled(claim.fields, declared)) for claim in claims if by.knows(claim)]


def _refuse_conflicts(others: list[Claim], taken: FieldSet, allowed: FieldSet) -> None:
    causes = []
    length = 0
    for claim in others:
        for path in paths(difference(intersection(claim.fields, taken), allowed)):
            causes.append(Cause("FieldManagerConflict", path, f"conflict with {claim.shown}"))
            length += len(path)
            if length > _TOLD:
                raise ApplyConflict(causes)
    if causes:
        raise ApplyConflict(causes)


def _recorded(obj: JsonObject, claims: list[Claim]) -> JsonObject:
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": record(claims)}}


def _tracked(obj: JsonObject) -> JsonObject:
    """The object without what the server alone sets."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key not in _UNTRACKED}
    return {**obj, "metadata": metadata}


def _unclaimed(obj: JsonObject) -> JsonObject:
    """The object without the record of who owns what."""
    metadata = {key: value for key, value in obj.get("metadata", {}).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}


def _check(applied: JsonObject, declared: Type) -> None:
    metadata = applied.get("metadata") or {}
    if metadata.get("managedFields") is not None:
        raise ApplyError(400, "BadRequest", "metadata.managedFields must be nil")
    try:
        check(applied, declared)
    except NotTyped as error:
        group, _, version = applied["apiVersion"].rpartition("/")
        place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {group}/{version}, Kind={applied['kind']}"
        # The real server gives this code and no reason, although the fault is the client's.
        raise ApplyError(500, "", f"failed to create typed patch object ({place}): {error}") from error
