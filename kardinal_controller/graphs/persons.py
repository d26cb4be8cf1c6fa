"""Admit Graphs that a person or a GitOps tool has written, and those that such Graphs make.

Such a Graph is walked with the rights of the ServiceAccount that it names, and with no right of the controller. A Graph
that another one makes may name that one's account, or one that it may impersonate: otherwise the right to create Graphs
would be every right of every account that the namespace lends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from kardinal.kube import Client
from kardinal.objects import GRAPH, JsonObject, Key, ResourceType, controller_of, key_of
from kardinal.runtime import Informer, Source, Watch
from kardinal.runtime.predicates import generation_changed
from kardinal_controller.graphs.accounts import AccountRights, account_of
from kardinal_controller.graphs.kinds import OWNED
from kardinal_controller.graphs.ownership import ADMITTED, UNDECIDED, Admission

__all__ = ["GraphsOfGraphs", "GraphsOfPersons"]

DEPTH_LIMIT: Final = 8
"""The most Graphs above a Graph, each of which has made the next one."""


class GraphsOfPersons:
    """The owner, for the engine, of Graphs without a controller."""

    resource: ResourceType | None = None
    kinds: Collection[ResourceType] = ()
    makes: Collection[ResourceType] = (GRAPH,)
    records_specs = False

    def changes(self) -> Sequence[Source]:
        return ()

    async def admission(self, graph: JsonObject) -> Admission:
        """Return whether the Graph names an account; its rights are asked for where they are needed."""
        if account_of(graph) is None:
            remedy = "name a ServiceAccount of this namespace, with whose rights it is walked"
            return Admission("refused", f"spec.serviceAccountName: {remedy}; or create a Bundle, which gets a Graph")
        return ADMITTED

    def identity(self, graph: JsonObject) -> Client:
        """Return nothing: no kind is written with rights of the controller."""
        raise TypeError("a Graph of a person writes as its account alone")


class GraphsOfGraphs:
    """The owner, for the engine, of Graphs that a Graph of a person has made."""

    resource: ResourceType | None = GRAPH
    kinds: Collection[ResourceType] = ()
    makes: Collection[ResourceType] = (GRAPH,)
    records_specs = False

    def __init__(self, graphs: Informer, rights: AccountRights) -> None:
        self._graphs = graphs
        self._rights = rights

    def changes(self) -> Sequence[Source]:
        """Return the source of changes of admissions: a Graph above that names another account."""
        return [Watch(self._graphs, self._below, when=generation_changed)]

    async def admission(self, graph: JsonObject) -> Admission:
        """Return whether the accounts of the Graph and of all Graphs above it follow from the first one's."""
        depth = 0
        child = graph
        while (owner := controller_of(child, GRAPH)) is not None:
            depth += 1
            if depth > DEPTH_LIMIT:
                return Admission("refused", f"it is nested deeper than {DEPTH_LIMIT} Graphs: make it by one above")
            parent = self._graphs.get(child["metadata"]["namespace"], owner.name)
            if parent is None or parent["metadata"]["uid"] != owner.uid:
                return UNDECIDED
            refusal = await self._refusal(child, parent)
            if refusal is not None:
                return refusal
            child = parent
        if any(reference.get("controller") for reference in child["metadata"].get("ownerReferences") or ()):
            return Admission("refused", "the Graph above it is not a person's: only those make Graphs")
        return ADMITTED

    def identity(self, graph: JsonObject) -> Client:
        """Return nothing: no kind is written with rights of the controller."""
        raise TypeError("a Graph that a Graph has made writes as its account alone")

    async def _refusal(self, child: JsonObject, parent: JsonObject) -> Admission | None:
        """Return why a Graph may not name its account; None if it may."""
        account = account_of(child)
        above = account_of(parent)
        name = parent["metadata"]["name"]
        if account is None or above is None or "bundleRef" in (child.get("spec") or {}):
            remedy = f"Graph {name} has to give it spec.serviceAccountName, and no spec.bundleRef"
            return Admission(
                "refused", f"a Graph that another one makes has an account and promotes no Bundle: {remedy}"
            )
        if account == above or await self._rights.may_act_as(above, account):
            return None
        message = (
            f"Graph {name} runs as ServiceAccount {above.name}, which may not act as {account.name}: name the same"
            f" account, or give {above.name} the verb impersonate on serviceaccounts of that name by a Role in this"
            " namespace"
        )
        return Admission("refused", message, asked_again=True)

    def _below(self, graph: JsonObject) -> Iterable[Key]:
        """Name the Graphs below a Graph."""
        below = [graph]
        for _ in range(DEPTH_LIMIT):
            below = [child for each in below for child in self._children(each)]
            yield from map(key_of, below)

    def _children(self, graph: JsonObject) -> Iterator[JsonObject]:
        uid = graph["metadata"]["uid"]
        for child in self._graphs.by_index(OWNED, uid):
            owner = controller_of(child, GRAPH)
            if owner is not None and owner.uid == uid and child["metadata"]["uid"] != uid:
                yield child
