"""Translate the ownership of fields between an object and its scale.

A scale is another kind, so on the way there the owners of the number of replicas become owners of the scale's, and on
the way back what the scale's owners have is theirs in the object. The trap: an updater has one entry per version, and a
scale has another version than its object. So no updater is recognised on the way back; what is written down for it is
a second entry, which has no time, even where nothing changed. That is what a real server does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kardinal_local.plane.apply.fieldsets import FieldSet, intersection
from kardinal_local.plane.apply.managers import Claim, claims_from, record
from kardinal_local.plane.documents import JsonObject

__all__ = ["object_record", "scale_record", "taken_record"]

_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final[FieldSet] = {"f:spec": {"f:replicas": {}}}


def scale_record(managed: list[JsonObject], *, replicas: FieldSet) -> list[JsonObject]:
    """The managedFields of a scale; `replicas`: where the object keeps their number."""
    return record(_as(claim, _VERSION, _REPLICAS) for claim in claims_from(managed) if _owns(claim, replicas))


def taken_record(known: list[JsonObject], *, manager: str) -> list[JsonObject]:
    """The managedFields of a scale that an update changed, where it had an owner before."""
    return record([Claim(manager, "Update", _VERSION, "scale", _REPLICAS)] if known else [])


def object_record(
    managed: list[JsonObject], scale: list[JsonObject], *, replicas: FieldSet, api_version: str
) -> list[JsonObject]:
    """The managedFields of the object after a write to its scale, which left it `scale` for a record."""
    owners = {claim.owner_key: claim for claim in claims_from(scale) if _owns(claim, _REPLICAS)}
    claims = []
    for claim in claims_from(managed):
        stays = not _owns(claim, replicas) or owners.pop(claim.owner_key, None) is not None
        claims.append(claim if stays else claim.without(replicas))
    new = (replace(_as(claim, api_version, replicas), time=None) for claim in owners.values())
    return record([*claims, *new])


def _owns(claim: Claim, fields: FieldSet) -> bool:
    return bool(intersection(claim.fields, fields))


def _as(claim: Claim, api_version: str, fields: FieldSet) -> Claim:
    return replace(claim, api_version=api_version, fields=fields, entry=None)
