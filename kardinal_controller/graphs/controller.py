"""Declare the engine on a manager: its caches, its sources and its controller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.graph.identity import graph_hash
from kardinal.graph.revision import OWNER_INDEX, owner_uids
from kardinal.kube import Client
from kardinal.objects import GRAPH, GRAPH_REVISION, Key, ResourceType, key_of
from kardinal.runtime import Clock, Controller, Manager, Watch, to_owner
from kardinal.runtime.predicates import deleted, metadata_changed
from kardinal_controller.graphs.observed import Interests, index_by_graph
from kardinal_controller.graphs.reconciler import GraphReconciler

__all__ = ["graph_controller"]

_HASH_INDEX = "graph-hash"


def graph_controller(manager: Manager, client: Client, *, clock: Clock, kinds: Sequence[ResourceType]) -> Controller:
    """Declare the engine on `manager`. Nodes may be of the given kinds; their objects are watched from the start."""
    graphs = manager.informer(GRAPH)
    revisions = manager.informer(GRAPH_REVISION)
    objects = {resource: manager.informer(resource) for resource in kinds}
    graphs.index(_HASH_INDEX, lambda graph: (graph_hash(*key_of(graph)),))
    revisions.index(OWNER_INDEX, owner_uids)
    for informer in objects.values():
        index_by_graph(informer)

    def graphs_of(label: str) -> Iterable[Key]:
        return map(key_of, graphs.by_index(_HASH_INDEX, label))

    interests = Interests(graphs_of)
    reconciler = GraphReconciler(
        client,
        graphs=graphs,
        revisions=revisions,
        objects=objects,
        interests=interests,
        status=manager.status,
        recorder=manager.recorder,
        clock=clock,
    )
    return manager.controller(
        "graph",
        reconciler,
        [
            # Not the status, which the engine writes itself.
            Watch(
                graphs,
                when=metadata_changed("uid", "generation", "deletionTimestamp", "finalizers", "ownerReferences"),
            ),
            Watch(revisions, to_owner(GRAPH), when=deleted),
            *(Watch(informer, interests.mapper(resource)) for resource, informer in objects.items()),
        ],
    )
