"""Declare the engine on a manager: its caches, its sources and its controller."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kardinal.clock import Clock
from kardinal.graph.identity import FINALIZER
from kardinal.graph.revision import OWNER_INDEX, owner_uids
from kardinal.kube import Client
from kardinal.objects import GRAPH, GRAPH_REVISION
from kardinal.runtime import Controller, KeyMemory, Manager, Watch, to_owner
from kardinal.runtime.finalizers import has_finalizer
from kardinal.runtime.predicates import Predicate, deleted, metadata_changed
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.accounts import AccountRights
from kardinal_controller.graphs.compiling import GraphCompiler
from kardinal_controller.graphs.interests import Interests
from kardinal_controller.graphs.kinds import GraphKinds
from kardinal_controller.graphs.metrics import GraphMetrics
from kardinal_controller.graphs.ownership import GraphOwner, GraphOwners
from kardinal_controller.graphs.persons import GraphsOfGraphs
from kardinal_controller.graphs.reconciler import GraphReconciler

__all__ = ["graph_controller"]

_finalizer_lost = Predicate(lambda event: event.new is not None and not has_finalizer(event.new, FINALIZER))
"""The finalizer of the engine is not there, or no longer."""


def graph_controller(
    manager: Manager,
    client: Client,
    *,
    clock: Clock,
    owners: Sequence[GraphOwner],
    expressions: ExpressionCompiler,
    reserved: Collection[str] = (),
) -> Controller:
    """Declare the engine on `manager`: it walks the Graphs of `owners`, and watches the kinds of their nodes.

    `reserved`: the API groups of whose kinds a Graph makes only those of its owner; defaults to none.
    """
    graphs = manager.informer(GRAPH)
    rights = AccountRights(client, clock=clock)
    nested = [GraphsOfGraphs(graphs, rights)] if any(GRAPH in owner.makes for owner in owners) else []
    registered = GraphOwners([*nested, *owners])
    revisions = manager.informer(GRAPH_REVISION)
    objects = {resource: manager.informer(resource) for resource in registered.read}
    revisions.index(OWNER_INDEX, owner_uids)
    memory = KeyMemory(graphs)
    interests = Interests(memory)
    metrics = GraphMetrics(manager.metrics, memory)
    kinds = GraphKinds(
        objects,
        client=client,
        rights=rights,
        dynamic=manager.dynamic,
        interests=interests,
        clock=clock,
        memory=memory,
    )
    metrics.watch_kinds(lambda: len(kinds.watched))
    manager.add(kinds)
    manager.add(rights)
    reconciler = GraphReconciler(
        client,
        compiler=GraphCompiler(expressions, memory, metrics),
        graphs=graphs,
        revisions=revisions,
        kinds=kinds,
        rights=rights,
        reserved=frozenset(reserved),
        interests=interests,
        metrics=metrics,
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
            # Neither the status nor that the finalizer is there, which the engine writes itself.
            Watch(
                graphs,
                when=metadata_changed("uid", "generation", "deletionTimestamp", "ownerReferences") | _finalizer_lost,
            ),
            Watch(revisions, to_owner(GRAPH), when=deleted),
            interests,
            *registered.changes(),
        ],
        memory=memory,
    )
