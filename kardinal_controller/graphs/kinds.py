"""The kinds of the cluster that nodes of Graphs may have, and the informers of their objects.

The kinds of the engine's owners are declared, and watched from the start. Any other kind is watched while a Graph that
exists needs it. The watch has the controller's rights, which an operator extends kind by kind with ClusterRoles that
are labelled `kardinal.io/aggregate-to-graph: "true"`; what a Graph may read of it is decided by its account.

CustomResourceDefinitions are watched as well while a Graph needs such a kind, so that a kind that is installed or
removed is followed at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Final

from kardinal.clock import Clock
from kardinal.graph.identity import patch_labels
from kardinal.graph.walk_types import Unobserved
from kardinal.kube import Client, Forbidden, NotFound, Unauthorized
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, GRAPH, JsonObject, Key, ResourceType
from kardinal.runtime import DynamicInformers, Event, Handle, Informer, KeyMemory
from kardinal.runtime.served_kinds import ServedKinds, group_kind
from kardinal_controller.graphs.accounts import AccountRights
from kardinal_controller.graphs.interests import Interests

__all__ = ["OWNED", "PATCHED", "GraphKinds", "Kind"]

OWNED: Final = "owned-by-graph"
"""The index of objects by the uid of the Graph that owns them."""
PATCHED: Final = "patched-by-graph"
"""The index of objects by the labels of the Graphs that patch them."""

READ_SECONDS: Final = 2.0
"""Seconds of real time that a reconcile waits for the first list of a kind; a later list leads to another one."""

Kind = tuple[str, str]
"""apiVersion and kind."""


class GraphKinds:
    """The kinds and informers of all Graphs."""

    def __init__(
        self,
        declared: Mapping[ResourceType, Informer],
        *,
        client: Client,
        rights: AccountRights,
        dynamic: DynamicInformers,
        interests: Interests,
        clock: Clock,
        memory: KeyMemory,
    ) -> None:
        self.declared = declared
        for informer in declared.values():
            _index_by_graph(informer)
            interests.follow(informer)
        self._rights = rights
        self._dynamic = dynamic
        self._interests = interests
        self._handles: dict[ResourceType, Handle] = {}
        self._users: dict[ResourceType, set[Key]] = {}
        self._needs: dict[Key, frozenset[ResourceType]] = {}
        self._kinds: dict[Key, frozenset[Kind]] = {}
        self._reading: set[Key] = set()
        self._served = ServedKinds(client, dynamic, clock=clock, defined=self._defined)
        memory.on_drop(partial(self.keep, kinds=frozenset(), resources=frozenset()))

    async def start(self) -> None:
        """Nothing has to be started."""

    async def stop(self) -> None:
        await self._served.stop()

    # Which kinds there are.

    async def served(self, graph: Key, kinds: Collection[Kind]) -> dict[Kind, ResourceType]:
        """Return those of some kinds of a Graph that the cluster serves."""
        declared = {(resource.api_version, resource.kind): resource for resource in self.declared}
        if others := frozenset(kinds) - declared.keys():
            # From now on, so that another Graph that needs none does not end the watch of definitions meanwhile.
            self._kinds[graph] = self._kinds.get(graph, frozenset()) | others
            if not self._served.follows_definitions and await self._rights.may_watch(CUSTOM_RESOURCE_DEFINITION):
                self._served.follow_definitions()
        found = {kind: declared[kind] if kind in declared else await self._served.find(kind) for kind in kinds}
        return {kind: resource for kind, resource in found.items() if resource is not None}

    def _defined(self, defined: str) -> None:
        """Walk the Graphs that have a kind whose definition was installed, changed or removed."""
        for graph, kinds in self._kinds.items():
            if defined in map(group_kind, kinds):
                self._interests.push(graph)

    # Their informers.

    def keep(self, graph: Key, *, kinds: Collection[Kind], resources: Collection[ResourceType]) -> None:
        """Watch what a Graph needs, from now on nothing else for it.

        `kinds` are those of its nodes that are not declared, whether they are served or not.
        """
        needed = frozenset(resources) - self.declared.keys()
        for resource in self._needs.get(graph, frozenset()) - needed:
            self._users[resource].discard(graph)
            if not self._users[resource]:
                del self._users[resource]
                self._handles.pop(resource).close()
        self._needs.pop(graph, None)
        self._kinds.pop(graph, None)
        for resource in needed & self._handles.keys():
            self._users.setdefault(resource, set()).add(graph)
        if opened := needed & self._handles.keys():
            self._needs[graph] = opened
        if kinds:
            self._kinds[graph] = frozenset(kinds)
        elif not self._kinds:
            self._served.leave_definitions()

    async def open(self, graph: Key, resource: ResourceType) -> None:
        """Watch a kind for a Graph, if the controller may, and wait for its first list for a while."""
        if resource in self.declared:
            return
        if resource not in self._handles and not await self._rights.may_watch(resource):
            return
        if resource not in self._handles:
            handle = self._dynamic.open(resource, changed=partial(self._changed, resource))
            _index_by_graph(handle.informers[0])
            self._handles[resource] = handle
        self._users.setdefault(resource, set()).add(graph)
        self._needs[graph] = self._needs.get(graph, frozenset()) | {resource}
        self._reading.add(graph)
        try:
            await self._handles[resource].wait_read_within(READ_SECONDS)
        finally:
            self._reading.discard(graph)

    def informer(self, resource: ResourceType) -> Informer | None:
        """Return the informer of a kind, if there is one and its objects have been read."""
        informer = self.declared.get(resource)
        if informer is None and resource in self._handles:
            [informer] = self._handles[resource].informers
        return informer if informer is not None and informer.synced else None

    def informers(self, resources: Iterable[ResourceType]) -> dict[ResourceType, Informer]:
        """Return the informers of those kinds whose objects have been read."""
        found = {resource: self.informer(resource) for resource in resources}
        return {resource: informer for resource, informer in found.items() if informer is not None}

    @property
    def watched(self) -> Collection[ResourceType]:
        """The kinds that are watched only while a Graph needs them."""
        return self._handles.keys()

    def is_open(self, resource: ResourceType) -> bool:
        """Return whether a kind is watched."""
        return resource in self.declared or resource in self._handles

    def require(self, resource: ResourceType) -> Informer:
        """Return the informer of a kind; raises Unobserved if its objects cannot be read."""
        plural = f"{resource.plural}.{resource.group}".removesuffix(".")
        if not self.is_open(resource):
            raise _not_watched(plural)
        [informer] = self._handles[resource].informers if resource in self._handles else [self.declared[resource]]
        match informer.outage.error if informer.outage is not None else None:
            case NotFound():
                raise Unobserved("Pending", "KindNotInstalled", f"{plural} of {resource.api_version} is not served")
            case Forbidden() | Unauthorized():
                raise _not_watched(plural)
            case None if not informer.synced:
                raise Unobserved("Pending", "Reading", f"waits for the first list of {plural}")
            case error if not informer.synced:
                raise Unobserved("SystemError", "Unreachable", f"{plural} cannot be read: {type(error).__name__}")
        return informer

    def _changed(self, resource: ResourceType, event: Event | None) -> None:
        if event is not None:
            self._interests.heard(resource, event)
            return
        # A Graph whose reconcile reads the first list now sees it anyway.
        for graph in self._users.get(resource, set()) - self._reading:
            self._interests.push(graph)


def _index_by_graph(informer: Informer) -> None:
    if not informer.indexed(OWNED):
        informer.index(OWNED, _owner_uids)
        informer.index(PATCHED, patch_labels)


def _owner_uids(obj: JsonObject) -> Iterable[str]:
    references = obj["metadata"].get("ownerReferences") or ()
    return {str(reference.get("uid")) for reference in references if reference.get("kind") == GRAPH.kind}


def _not_watched(plural: str) -> Unobserved:
    message = (
        f"the controller may not watch {plural}: give it list and watch by a ClusterRole with the label "
        'kardinal.io/aggregate-to-graph: "true"'
    )
    return Unobserved("Error", "WatchForbidden", message)
