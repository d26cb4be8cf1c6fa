"""Find the objects that an owner stamped and no longer asks for.

A resource may have been renamed, its template may stamp another name or kind or have another lifecycle, or another
blueprint may be selected. What was stamped before is listed in `status.orphans` until it is deleted. That is not before
the resource of its name has been submitted, or is gone from the blueprint: until then the old object may be all that
the resource has.

This module names objects only. A status is no proof, so the object is read again before it is deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.naming import bounded
from kardinal_supplychain.api.status import OrphanReference, ResourceStatus
from kardinal_supplychain.realize.bundle import is_bundle
from kardinal_supplychain.realize.runs import LABEL_RESOURCE

__all__ = ["ORPHANS_LIMIT", "ObjectPlace", "Orphan", "find_orphans", "place_of"]

ORPHANS_LIMIT = 200
"""The most orphans in a status; further ones are listed once these are deleted."""


class ObjectPlace(NamedTuple):
    """The place of an object in a cluster, in whatever version its kind is read."""

    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Orphan:
    """An object that is not asked for any more, and whether it may be deleted by now."""

    reference: OrphanReference
    deletable: bool


def place_of(api_version: str, kind: str, namespace: str, name: str) -> ObjectPlace:
    """Return the place of an object."""
    return ObjectPlace(api_version.rpartition("/")[0], kind, namespace, name)


def find_orphans(
    owned: Iterable[tuple[ResourceType, JsonObject]],
    *,
    resources: Sequence[ResourceStatus],
    listed: Sequence[OrphanReference],
    wanted: Collection[ObjectPlace],
    pending: Collection[str],
) -> list[Orphan]:
    """Return the orphans of an owner, those that are listed already first.

    `owned` are the live objects that the owner controls; `resources` and `listed` are of its earlier status. `wanted`
    are the objects of now, with the runs that are kept. `pending` are the resources of the blueprint that have not been
    submitted: what they had stays theirs.
    """
    held = {bounded(name) for name in pending}
    candidates = (*_stamped(resources), *(_reference(resource, obj) for resource, obj in owned))
    found: dict[ObjectPlace, OrphanReference] = {}
    for reference in (*listed, *(each for each in candidates if bounded(each.resource_name or "") not in held)):
        place = place_of(reference.api_version, reference.kind, reference.namespace, reference.name)
        if place not in wanted and (place not in found or reference.uid is not None):
            # Live objects come last: another object may have taken the name since.
            found[place] = reference
    orphans = [Orphan(each, deletable=bounded(each.resource_name or "") not in held) for each in found.values()]
    return orphans[:ORPHANS_LIMIT]


def _stamped(resources: Sequence[ResourceStatus]) -> Iterator[OrphanReference]:
    for resource in resources:
        stamped = resource.stamped_ref
        # A Bundle goes its way without its owner.
        if stamped is not None and not is_bundle({"apiVersion": stamped.api_version, "kind": stamped.kind}):
            yield OrphanReference(**stamped.model_dump(), resource_name=resource.name)


def _reference(resource: ResourceType, obj: JsonObject) -> OrphanReference:
    metadata = obj["metadata"]
    return OrphanReference(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        resource=f"{resource.plural}.{resource.group}".removesuffix("."),
        uid=metadata["uid"],
        resource_name=(metadata.get("labels") or {}).get(LABEL_RESOURCE),
    )
