"""Server-side apply and the record of who owns which field.

Every write leaves its mark in `metadata.managedFields`: an apply owns the fields its configuration names, any other
write owns the fields it added or changed. An apply that would change a field of another manager conflicts, unless
forced; a field that its manager stops applying is removed, unless somebody else owns it too. The main object and its
status subresource are separate claims of one manager.

What controllers rely on: an apply that changes nothing gives back the live object itself, times included, so that it
is no write. The trap: a merge can grow a list but never shrink it, so removal works from the previous claim alone;
without the claim of the last apply nothing is ever removed. Design: local-plane.md 2.2 (items 6, 7, 10), 5.2.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from kardinal.localplane.apply.changes import compare, merge, remove, with_containers
from kardinal.localplane.apply.fieldsets import FieldSet, difference, intersection, paths, union
from kardinal.localplane.apply.last_applied import applied_before, synchronised
from kardinal.localplane.apply.managers import Claim, claims_from, record
from kardinal.localplane.apply.shapes import tracked, without_empty_metadata
from kardinal.localplane.apply.typed import NotTyped, field_set
from kardinal.localplane.builtin import with_metadata
from kardinal.localplane.documents import JsonObject, timestamp
from kardinal.localplane.errors import ApplyConflict, ApplyError, Cause

__all__ = ["apply", "track_update"]

_NOTHING: JsonObject = {"metadata": {}}


def apply(
    live: JsonObject | None,
    applied: JsonObject,
    *,
    manager: str,
    force: bool,
    subresource: str,
    schema: JsonObject | None,
    now: datetime,
) -> JsonObject:
    """The object after the apply; `live` itself when nothing changes."""
    if applied.get("metadata", {}).get("managedFields") is not None:
        raise ApplyError(400, "BadRequest", "metadata.managedFields must be nil")
    root = with_metadata(schema)
    wanted = _wanted(applied, root)
    mine = Claim(manager, "Apply", applied.get("apiVersion", ""), subresource, wanted, timestamp(now))
    if live is None:
        return _recorded(without_empty_metadata(applied), [mine])

    known = claims_from(live["metadata"].get("managedFields"))
    claims = known or [_before_first_apply(live, root, now)]
    last = next((claim for claim in claims if claim.same_voice(mine)), None)
    others = [claim for claim in claims if claim is not last]

    merged = merge(live, tracked(applied), root)
    if last is not None and last.fields != wanted:
        dropped = _dropped(last.fields, wanted, others, root)
        if dropped:
            merged = remove(merged, dropped, root)
    merged = without_empty_metadata(merged)
    change = compare(tracked(live), tracked(merged), root)
    taken = union(change.modified, change.added)
    if taken and not force:
        allowed = applied_before(live, manager=manager, schema=root)
        _refuse_conflicts(others, difference(taken, allowed))
    if change:
        others = [claim.without(taken).without(change.removed) for claim in others]
    elif known and mine.claims_nothing_new(last):
        return synchronised(live, applied, manager=manager)
    return synchronised(_recorded(merged, [*others, mine]), applied, manager=manager)


def track_update(
    live: JsonObject | None,
    new: JsonObject,
    *,
    manager: str,
    subresource: str,
    schema: JsonObject | None,
    now: datetime,
) -> list[JsonObject]:
    """The managedFields after a create, replace or patch that leaves the object as `new`."""
    claims = _base(live, new, subresource)
    if live is not None and not claims:
        # Nobody ever claimed this object, or somebody reset the claims: only an apply begins anew.
        return []
    before = tracked(live) if live is not None else _NOTHING
    change = compare(before, tracked(without_empty_metadata(new)), with_metadata(schema))
    taken = union(change.modified, change.added)
    if change:
        claims = [claim.without(taken).without(change.removed) for claim in claims]
    if taken:
        mine = Claim(manager, "Update", new.get("apiVersion", ""), subresource, taken, timestamp(now))
        earlier = next((claim for claim in claims if claim.same_voice(mine)), None)
        if earlier is not None:
            claims.remove(earlier)
            mine = replace(mine, fields=union(earlier.fields, taken))
        claims.append(mine)
    return record(claims)


def _before_first_apply(live: JsonObject, root: JsonObject, now: datetime) -> Claim:
    """Who owns an object that nobody ever claimed."""
    everything = compare(_NOTHING, tracked(live), root).added
    return Claim("before-first-apply", "Update", live["apiVersion"], "", everything, timestamp(now))


def _base(live: JsonObject | None, new: JsonObject, subresource: str) -> list[Claim]:
    """The claims a write starts from: on the main object a client may rewrite them or, with an empty list, reset."""
    stored = claims_from(live["metadata"].get("managedFields")) if live is not None else []
    given = new["metadata"].get("managedFields")
    if subresource or given is None:
        return stored
    if given in ([], [{}]):
        return []
    return claims_from(given) or stored


def _dropped(last: FieldSet, wanted: FieldSet, others: list[Claim], root: JsonObject) -> FieldSet:
    """What the manager applied before, applies no more, and shares with nobody."""
    gone = with_containers(last, root)
    for fields in (wanted, *(claim.fields for claim in others)):
        if not gone:
            break
        gone = difference(gone, with_containers(fields, root))
    # The identity in it is nobody's, so metadata itself never goes.
    return difference(gone, {"f:metadata": {}})


def _refuse_conflicts(others: list[Claim], taken: FieldSet) -> None:
    causes = [
        Cause("FieldManagerConflict", path, f"conflict with {claim.shown}")
        for claim in others
        for path in paths(intersection(claim.fields, taken))
    ]
    if causes:
        raise ApplyConflict(causes)


def _recorded(obj: JsonObject, claims: list[Claim]) -> JsonObject:
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": record(claims)}}


def _wanted(applied: JsonObject, root: JsonObject) -> FieldSet:
    """The fields that the configuration names."""
    try:
        fields = field_set(tracked(applied), root)
    except NotTyped as error:
        metadata = applied.get("metadata", {})
        place = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        kind = f"{applied.get('apiVersion')}, Kind={applied.get('kind')}"
        # The real server gives this code and no reason, although the fault is the client's.
        raise ApplyError(500, "", f"failed to create typed patch object ({place}; {kind}): {error}") from error
    if fields.get("f:metadata") == {}:
        # Without labels or the like the configuration names nothing of the metadata but its existence.
        del fields["f:metadata"]
    return fields
