"""The kinds that templates stamp: whether they are served, and the objects that were stamped.

A kind is watched while an owner needs it, with the rights of the program, and only objects with a label of ours. So an
operator decides which kinds can be stamped, by ClusterRoles with the label
`kardinal.io/aggregate-to-supplychain: "true"`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final

from kardinal.clock import Clock
from kardinal.kube import Client, Forbidden, NotFound, Unauthorized
from kardinal.objects import JsonObject, Key, ResourceType
from kardinal.objects.errors import KardinalError
from kardinal.runtime import DynamicInformers, Event, Handle, Informer, KeyMemory
from kardinal.runtime.served_kinds import ServedKinds, group_kind
from kardinal_supplychain.realize.plan import Kind, StampRefusal
from kardinal_supplychain.realize.resource_state import plural_of
from kardinal_supplychain.reconcilers.uses import Uses

__all__ = ["BY_CONTROLLER", "StampedKinds", "UnreadObjects", "controller_uids"]

BY_CONTROLLER: Final = "controller"
"""The index of stamped objects by the uid of their controller."""

READ_SECONDS: Final = 5.0
"""Seconds of real time that a reconcile waits for the first list of a kind."""

Moved = Callable[[ResourceType, Event], None]
"""Called with each change of an object of a kind."""


class UnreadObjects(KardinalError):
    """The objects of a kind could not be read in time."""

    transient = True


class StampedKinds:
    """The kinds that the owners of one controller stamp.

    `labels`: the selector of their objects. `push` is called with each owner whose kind was installed or removed, or
    whose objects can be read now, or cannot any more.
    """

    def __init__(
        self,
        client: Client,
        dynamic: DynamicInformers,
        *,
        clock: Clock,
        labels: str,
        memory: KeyMemory,
        moved: Moved,
        push: Callable[[Key], None],
    ) -> None:
        self._dynamic = dynamic
        self._labels = labels
        self._moved = moved
        self._push = push
        self._kinds: Uses[Kind] = Uses(memory)
        self._types: Uses[ResourceType] = Uses(memory)
        self._found: dict[Kind, ResourceType] = {}
        self._handles: dict[ResourceType, Handle] = {}
        self._reading: set[Key] = set()
        self._served = ServedKinds(client, dynamic, clock=clock, defined=self._defined)
        memory.on_drop(lambda _: self._close_unused())

    async def start(self) -> None:
        """Watch the definitions of kinds."""
        self._served.follow_definitions()

    async def stop(self) -> None:
        """Close all watches."""
        for handle in self._handles.values():
            handle.close()
        await self._served.stop()

    async def find(self, owner: Key, kind: Kind) -> ResourceType | StampRefusal:
        """Return the type of a kind; `owner` is woken when the kind is installed or removed."""
        self._kinds.add(owner, kind)
        found = await self._served.find(kind)
        if found is None:
            self._found.pop(kind, None)
            return StampRefusal(f'no matches for kind "{kind.kind}" in version "{kind.api_version}"')
        return found

    async def look_up(self, owner: Key, kind: Kind) -> ResourceType | StampRefusal:
        """Return the type of a kind, and watch its stamped objects for `owner`. Raises `UnreadObjects`."""
        found = await self.find(owner, kind)
        if isinstance(found, StampRefusal) or not found.namespaced:
            return found
        self._found[kind] = found
        self._types.add(owner, found)
        handle = self._handles.get(found)
        if handle is None:
            handle = self._dynamic.open(found, labels=self._labels, changed=partial(self._changed, found))
            [informer] = handle.informers
            if not informer.indexed(BY_CONTROLLER):
                informer.index(BY_CONTROLLER, controller_uids)
            self._handles[found] = handle
        self._reading.add(owner)
        try:
            await handle.wait_read_within(READ_SECONDS)
        finally:
            self._reading.discard(owner)
        return self._readable(found, handle)

    def keep(self, owner: Key, kinds: Collection[Kind]) -> None:
        """Watch what an owner needs, and from now on nothing else for it; kinds that cannot be read now are watched."""
        self._kinds.note(owner, kinds)
        self._types.note(owner, [self._found[kind] for kind in kinds if kind in self._found])
        self._close_unused()

    def informer(self, type_: ResourceType) -> Informer | None:
        """Return the objects of a kind that is watched."""
        handle = self._handles.get(type_)
        return handle.informers[0] if handle is not None else None

    @property
    def watched(self) -> Collection[ResourceType]:
        """The kinds that are watched now."""
        return self._handles.keys()

    def _close_unused(self) -> None:
        used = set(self._types.used)
        for type_ in self._handles.keys() - used:
            self._handles.pop(type_).close()
        self._found = {kind: type_ for kind, type_ in self._found.items() if type_ in used}

    @staticmethod
    def _readable(type_: ResourceType, handle: Handle) -> ResourceType | StampRefusal:
        plural = plural_of(type_)
        match handle.outage.error if handle.outage is not None else None:
            case NotFound():
                return StampRefusal(f'no matches for kind "{type_.kind}" in version "{type_.api_version}"')
            case Forbidden() | Unauthorized():
                return StampRefusal(
                    f"the controller may not watch {plural}: give it list and watch by a ClusterRole with the label "
                    'kardinal.io/aggregate-to-supplychain: "true"',
                    "WatchForbidden",
                )
            case error if not handle.synced:
                raise UnreadObjects(f"{plural} could not be read: {type(error).__name__ if error else 'no answer yet'}")
        return type_

    def _changed(self, type_: ResourceType, event: Event | None) -> None:
        if event is not None:
            self._moved(type_, event)
            return
        # An owner whose reconcile waits for the first list sees it anyway.
        for owner in self._types.users(type_) - self._reading:
            self._push(owner)

    def _defined(self, defined: str) -> None:
        for kind in [each for each in self._kinds.used if group_kind(each) == defined]:
            for owner in self._kinds.users(kind):
                self._push(owner)


def controller_uids(obj: JsonObject) -> Iterable[str]:
    """Return the uid of the controller of an object, in a list."""
    references = obj["metadata"].get("ownerReferences") or ()
    return [str(each.get("uid")) for each in references if each.get("controller") is True]
