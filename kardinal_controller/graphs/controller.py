"""Declare the engine on a manager: its caches, its sources and its controller."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.clock import Clock
from kardinal.graph.revision import OWNER_INDEX, owner_uids
from kardinal.kube import Client
from kardinal.objects import GRAPH, GRAPH_REVISION
from kardinal.runtime import Controller, KeyMemory, Manager, Watch, to_owner
from kardinal.runtime.predicates import deleted, metadata_changed
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.compiling import GraphCompiler
from kardinal_controller.graphs.observed import Interests, index_by_graph
from kardinal_controller.graphs.ownership import GraphOwner, GraphOwners
from kardinal_controller.graphs.reconciler import GraphReconciler

__all__ = ["graph_controller"]


def graph_controller(
    manager: Manager,
    client: Client,
    *,
    clock: Clock,
    owners: Sequence[GraphOwner],
    expressions: ExpressionCompiler,
) -> Controller:
    """Declare the engine on `manager`: it walks the Graphs of `owners`, and watches the kinds of their nodes."""
    registered = GraphOwners(owners)
    graphs = manager.informer(GRAPH)
    revisions = manager.informer(GRAPH_REVISION)
    objects = {resource: manager.informer(resource) for resource in registered.kinds}
    revisions.index(OWNER_INDEX, owner_uids)
    for informer in objects.values():
        index_by_graph(informer)

    memory = KeyMemory(graphs)
    interests = Interests(memory)
    reconciler = GraphReconciler(
        client,
        compiler=GraphCompiler(expressions, memory),
        graphs=graphs,
        revisions=revisions,
        objects=objects,
        interests=interests,
        status=manager.status,
        recorder=manager.recorder,
        clock=clock,
        owners=registered,
        memory=memory,
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
            *registered.changes(),
        ],
        memory=memory,
    )
