"""Declare the engine on a manager: its caches, its sources and its controller."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.graph.revision import OWNER_INDEX, owner_uids
from kardinal.kube import Client
from kardinal.objects import GRAPH, GRAPH_REVISION, ResourceType
from kardinal.runtime import Clock, Controller, Manager, Source, Watch, to_owner
from kardinal.runtime.predicates import deleted, metadata_changed
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.admission import Admission
from kardinal_controller.graphs.compiling import GraphCompiler
from kardinal_controller.graphs.observed import Interests, index_by_graph
from kardinal_controller.graphs.reconciler import GraphReconciler

__all__ = ["graph_controller"]


def graph_controller(
    manager: Manager,
    client: Client,
    *,
    clock: Clock,
    kinds: Sequence[ResourceType],
    expressions: ExpressionCompiler,
    admission: Admission | None = None,
    admission_changes: Sequence[Source] = (),
) -> Controller:
    """Declare the engine on `manager`. Nodes may be of the given kinds; their objects are watched from the start.

    Without `admission` every Graph is walked; `admission_changes` are the sources that can change its answer.
    """
    graphs = manager.informer(GRAPH)
    revisions = manager.informer(GRAPH_REVISION)
    objects = {resource: manager.informer(resource) for resource in kinds}
    revisions.index(OWNER_INDEX, owner_uids)
    for informer in objects.values():
        index_by_graph(informer)

    interests = Interests()
    reconciler = GraphReconciler(
        client,
        compiler=GraphCompiler(expressions),
        graphs=graphs,
        revisions=revisions,
        objects=objects,
        interests=interests,
        status=manager.status,
        recorder=manager.recorder,
        clock=clock,
        admission=admission,
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
            *admission_changes,
        ],
    )
