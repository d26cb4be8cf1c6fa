"""The kinds of the cluster that nodes of Graphs may have, and the informers of their objects.

The kinds of the engine's owners are declared, and watched from the start. Any other kind is watched while a Graph that
exists needs it. The watch has the controller's rights, which an operator extends kind by kind with ClusterRoles that
are labelled `kardinal.io/aggregate-to-graph: "true"`; what a Graph may read of it is decided by its account.

CustomResourceDefinitions are watched as well while a Graph needs such a kind, so that a kind that is installed or
removed is followed at once. Other kinds, those of the API server and of aggregated ones, are asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Final

from kardinal.clock import Clock
from kardinal.graph.identity import patch_labels
from kardinal.graph.walk_types import Unobserved
from kardinal.kube import Client, Forbidden, NotFound, Unauthorized
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, GRAPH, JsonObject, Key, ResourceType
from kardinal.runtime import DynamicInformers, Event, Handle, Informer, KeyMemory
from kardinal_controller.graphs.accounts import AccountRights
from kardinal_controller.graphs.interests import Interests
from kardinal_controller.recent_answers import RecentAnswers

__all__ = ["KIND_SECONDS", "OWNED", "PATCHED", "GraphKinds", "Kind"]

OWNED: Final = "owned-by-graph"
"""The index of objects by the uid of the Graph that owns them."""
PATCHED: Final = "patched-by-graph"
"""The index of objects by the labels of the Graphs that patch them."""

KIND_SECONDS: Final = 60.0
"""The age in seconds up to which the kinds of an API group are used, and after which a missing kind is asked for."""
READ_SECONDS: Final = 2.0
"""Seconds of real time that a reconcile waits for the first list of a kind; a later list leads to another one."""
GROUPS: Final = 4096

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
        self._client = client
        self._rights = rights
        self._dynamic = dynamic
        self._interests = interests
        self._handles: dict[ResourceType, Handle] = {}
        self._users: dict[ResourceType, set[Key]] = {}
        self._needs: dict[Key, frozenset[ResourceType]] = {}
        self._kinds: dict[Key, frozenset[Kind]] = {}
        self._reading: set[Key] = set()
        self._definitions: Handle | None = None
        self._groups = RecentAnswers[Mapping[Kind, ResourceType]](clock=clock, most=GROUPS)
        memory.on_drop(partial(self.keep, kinds=frozenset(), resources=frozenset()))

    async def start(self) -> None:
        """Nothing has to be started."""

    async def stop(self) -> None:
        await self._groups.stop()

    # Which kinds there are.

    async def served(self, graph: Key, kinds: Collection[Kind]) -> dict[Kind, ResourceType]:
        """Return those of some kinds of a Graph that the cluster serves."""
        declared = {(resource.api_version, resource.kind): resource for resource in self.declared}
        if others := frozenset(kinds) - declared.keys():
            # From now on, so that another Graph that needs none does not end the watch of definitions meanwhile.
            self._kinds[graph] = self._kinds.get(graph, frozenset()) | others
        found = {kind: declared[kind] if kind in declared else await self._find(kind) for kind in kinds}
        return {kind: resource for kind, resource in found.items() if resource is not None}

    async def _find(self, kind: Kind) -> ResourceType | None:
        definitions = await self._read_definitions()
        api_version, name = kind
        group = api_version.rpartition("/")[0]
        for definition in definitions.by_index(_BY_KIND, f"{group}/{name}") if definitions is not None else ():
            return _defined(definition, api_version)
        return (await self._groups.get(api_version, partial(self._ask, api_version), max_age=KIND_SECONDS)).get(kind)

    async def _ask(self, api_version: str) -> Mapping[Kind, ResourceType]:
        group, _, version = api_version.rpartition("/")
        try:
            answer = await self._client.fetch(f"/apis/{group}/{version}" if group else f"/api/{version}")
        except (NotFound, Forbidden):
            return {}
        return {
            (api_version, each["kind"]): ResourceType(
                group, version, each["kind"], each["name"], namespaced=each["namespaced"]
            )
            for each in answer.get("resources") or ()
            if "/" not in each["name"]
        }

    async def _read_definitions(self) -> Informer | None:
        """Return the informer of CustomResourceDefinitions; None where the controller may not read them."""
        if self._definitions is None and not await self._rights.may_watch(CUSTOM_RESOURCE_DEFINITION):
            return None
        if self._definitions is None:
            self._definitions = self._dynamic.open(
                CUSTOM_RESOURCE_DEFINITION, projection=_outline, changed=self._definition_changed
            )
            [informer] = self._definitions.informers
            if not informer.indexed(_BY_KIND):
                informer.index(_BY_KIND, _kind_of_definition)
        [informer] = self._definitions.informers
        await _read(self._definitions)
        return informer if informer.synced else None

    def _definition_changed(self, event: Event | None) -> None:
        """Walk the Graphs that have a kind of a definition that was installed, changed or removed."""
        if event is None:
            return
        changed = {name for obj in (event.old, event.new) if obj is not None for name in _kind_of_definition(obj)}
        for graph, kinds in self._kinds.items():
            if any(f"{api_version.rpartition('/')[0]}/{kind}" in changed for api_version, kind in kinds):
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
        elif not self._kinds and self._definitions is not None:
            self._definitions.close()
            self._definitions = None

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
            await _read(self._handles[resource])
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


_BY_KIND: Final = "kind"


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


async def _read(handle: Handle) -> None:
    try:
        async with asyncio.timeout(READ_SECONDS):
            await handle.wait_read()
    except TimeoutError:
        return


def _outline(definition: JsonObject) -> JsonObject:
    """Return the part of a CustomResourceDefinition that says which kind it defines, without its schemas."""
    spec = definition["spec"]
    versions = [{"name": each["name"], "served": each["served"]} for each in spec["versions"]]
    conditions = (definition.get("status") or {}).get("conditions") or ()
    names = {field: spec["names"][field] for field in ("kind", "plural")}
    return {
        "metadata": {field: definition["metadata"][field] for field in ("name", "uid", "resourceVersion")},
        "spec": {"group": spec["group"], "names": names, "scope": spec["scope"], "versions": versions},
        "established": any(each["type"] == "Established" and each["status"] == "True" for each in conditions),
    }


def _kind_of_definition(outline: JsonObject) -> Iterable[str]:
    return (f"{outline['spec']['group']}/{outline['spec']['names']['kind']}",)


def _defined(outline: JsonObject, api_version: str) -> ResourceType | None:
    """Return the kind of a definition in one version; None if it is not served."""
    spec = outline["spec"]
    version = api_version.rpartition("/")[2]
    served = any(each["name"] == version and each["served"] for each in spec["versions"])
    if not outline["established"] or not served:
        return None
    names = spec["names"]
    namespaced = spec["scope"] == "Namespaced"
    return ResourceType(spec["group"], version, names["kind"], names["plural"], namespaced=namespaced)
