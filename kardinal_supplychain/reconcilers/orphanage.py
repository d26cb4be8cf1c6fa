"""Delete the objects that an owner no longer asks for, and the runs of its resources that are not kept.

Its orphans stand in its status until they are gone. Kinds that only an earlier status names are watched for one more
reconcile, so that all objects of an earlier template are found, and not only the one that the status names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final, Protocol

from kardinal.objects import JsonObject, Key, ResourceType
from kardinal.runtime import KeyMemory, Manager
from kardinal_supplychain.api.status import OrphanReference, ResourceStatus, StampedReference
from kardinal_supplychain.realize.orphans import ObjectPlace, find_orphans, place_of
from kardinal_supplychain.realize.plan import Kind
from kardinal_supplychain.realize.resource_state import ResourceState
from kardinal_supplychain.reconcilers.accounts import StampingAccount
from kardinal_supplychain.reconcilers.removal import Doomed, Remover

__all__ = ["Orphanage", "OwnedObjects"]

_SEGMENT: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class OwnedObjects(Protocol):
    """One reconcile of an owner, with the objects that it controls. `due`: when to reconcile again without an event."""

    key: Key
    account: StampingAccount
    due: list[datetime]

    @property
    def types(self) -> Sequence[ResourceType]:
        """The kinds whose objects were looked at."""
        ...

    def owned(self, type_: ResourceType) -> Sequence[JsonObject]:
        """Return the objects of a kind that the owner controls."""
        ...

    async def look_up(self, kind: Kind) -> None:
        """Watch another kind."""
        ...


class Orphanage:
    """Deletes the orphans and the surplus runs of the owners of one controller."""

    def __init__(self, manager: Manager, *, memory: KeyMemory) -> None:
        self._client = manager.client
        self._clock = manager.clock
        self._remover = Remover(clock=manager.clock, recorder=manager.recorder, memory=memory)

    async def clear(
        self, owner: JsonObject, states: Sequence[ResourceState], objects: OwnedObjects
    ) -> list[JsonObject] | None:
        """Delete what is to be deleted; return the orphans that are still there, as the status lists them."""
        status = owner.get("status") or {}
        resources = [ResourceStatus.model_validate(each) for each in status.get("resources") or ()]
        listed = [OrphanReference.model_validate(each) for each in status.get("orphans") or ()]
        for reference in (*listed, *(each.stamped_ref for each in resources)):
            if reference is not None:
                await objects.look_up(Kind(reference.api_version, reference.kind))
        orphans = find_orphans(
            [(type_, obj) for type_ in objects.types for obj in objects.owned(type_)],
            resources=resources,
            listed=listed,
            wanted=set(_wanted(states, objects.key.namespace)),
            pending=[state.name for state in states if state.type is None and not state.passes_through],
        )
        found = {doomed: each for each in orphans if (doomed := _doomed(each.reference, objects.key)) is not None}
        surplus = [
            Doomed(state.type, run.name, run.uid) for state in states if state.type is not None for run in state.surplus
        ]
        deleted = [*(doomed for doomed, each in found.items() if each.deletable), *surplus]
        left = await self._remove(owner, deleted, objects)
        kept = [each.reference for doomed, each in found.items() if not each.deletable or doomed in left]
        return [reference.to_json() for reference in kept] or None

    async def _remove(self, owner: JsonObject, doomed: Collection[Doomed], objects: OwnedObjects) -> Collection[Doomed]:
        left = await self._remover.remove(owner, self._client.as_user(objects.account.user), doomed)
        objects.due.extend(self._clock.now() + wait for wait in left.values())
        return left.keys()


def _wanted(states: Sequence[ResourceState], namespace: str) -> Iterator[ObjectPlace]:
    for state in states:
        if state.type is not None:
            names = [*state.runs, *([state.stamped["metadata"]["name"]] if state.stamped is not None else [])]
            yield from (place_of(state.type.api_version, state.type.kind, namespace, name) for name in names)


def _doomed(reference: StampedReference, owner: Key) -> Doomed | None:
    """Return the object of a reference; None if that is none which the owner can have stamped."""
    group, _, version = reference.api_version.rpartition("/")
    plural = reference.resource.partition(".")[0]
    texts = [version, plural, *([group] if group else [])]
    if reference.namespace != owner.namespace or not all(map(_SEGMENT.fullmatch, texts)):
        return None
    return Doomed(ResourceType(group, version, reference.kind, plural), reference.name, reference.uid)
