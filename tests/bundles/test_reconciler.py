"""One run of the reconciler of Bundles, with caches that lag behind the API server."""

from __future__ import annotations

from kardinal.objects import GRAPH, JsonObject, key_of
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.translation.recorded import spec_hash
from kardinal.promotion.translation.repository import Features
from kardinal.runtime import KeyMemory, Manager
from kardinal_controller.attestations import Attestations
from kardinal_controller.bundles import BundleReconciler, GraphKeeper
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.accounts import AccountRights
from kardinal_controller.metrics import ControlPlaneMetrics
from tests.bundles.reading import node_of
from tests.support.identities import SYSTEM_NAMESPACE
from tests.support.names import DEV, POLICIES, PROD, TEAM
from tests.support.objects import bundle, pipeline
from tests.support.registry import REGISTRY
from tests.support.world import World


def reconciler_of(world: World, manager: Manager, caches: Caches) -> BundleReconciler:
    graphs = GraphKeeper(
        caches,
        world.client,
        clock=world.clock,
        features=Features(registry=REGISTRY, allow_local_repositories=True),
        policy_namespaces=(POLICIES,),
        attestations=Attestations(world.client, namespace=SYSTEM_NAMESPACE),
        expressions=ExpressionCompiler(),
        rights=AccountRights(world.client, clock=world.clock),
    )
    return BundleReconciler(
        caches,
        graphs,
        status=manager.status,
        recorder=manager.recorder,
        clock=world.clock,
        metrics=ControlPlaneMetrics(manager.metrics),
        memory=KeyMemory(caches.bundles),
    )


async def test_target_that_moves_while_its_graph_is_made_is_left_to_the_next_run(world: World) -> None:
    way, seen = await world.apply(
        pipeline("file:///repo", environments=[DEV, PROD]), bundle("b", intent={"target": DEV})
    )
    manager = Manager(world.client, clock=world.clock, name="lagging")
    caches = Caches(manager)
    caches.pipelines.replace({key_of(way): way}, "1")
    caches.bundles.replace({key_of(seen): seen}, "1")
    reconciler = reconciler_of(world, manager, caches)

    [moved] = await world.apply(bundle("b", intent={"target": PROD}))
    await reconciler.reconcile(key_of(seen))
    found = await world.get(BUNDLE, "b")
    assert found["metadata"]["generation"] == moved["metadata"]["generation"] == 2
    assert (found["status"]["phase"], found["status"]["observedGeneration"]) == ("Promoting", 1)

    caches.bundles.replace({key_of(found): found}, "2")
    graph = await world.get(GRAPH, "b")
    caches.graphs.replace({key_of(graph): graph}, "2")
    await reconciler.reconcile(key_of(seen))
    graph = await world.get(GRAPH, "b")
    assert [node["id"] for node in graph["spec"]["nodes"]] == ["bundle", "freeze", node_of(DEV), node_of(PROD)]
    assert (await world.get(BUNDLE, "b"))["status"]["observedGeneration"] == 2


async def test_target_that_moves_after_a_run_has_died_extends_the_graph_that_it_made(world: World) -> None:
    way, seen = await world.apply(
        pipeline("file:///repo", environments=[DEV, PROD]), bundle("b", intent={"target": DEV})
    )
    manager = Manager(world.client, clock=world.clock, name="killed")
    caches = Caches(manager)
    caches.pipelines.replace({key_of(way): way}, "1")
    caches.bundles.replace({key_of(seen): seen}, "1")
    reconciler = reconciler_of(world, manager, caches)
    await reconciler.reconcile(key_of(seen))
    graph = await world.get(GRAPH, "b")
    # The status as it was between the note of the hash and the note of the Graph.
    noted: JsonObject = {"status": dict.fromkeys((await world.get(BUNDLE, "b"))["status"])}
    noted["status"]["graph"] = {"nextHash": spec_hash(graph), "uid": None, "hash": None}
    await world.client.patch(BUNDLE, "b", TEAM, noted, subresource="status")

    [moved] = await world.apply(bundle("b", intent={"target": PROD}))
    caches.bundles.replace({key_of(moved): moved}, "2")
    caches.graphs.replace({key_of(graph): graph}, "2")
    await reconciler.reconcile(key_of(seen))
    graph = await world.get(GRAPH, "b")
    assert [node["id"] for node in graph["spec"]["nodes"]] == ["bundle", "freeze", node_of(DEV), node_of(PROD)]
    assert set((await world.get(BUNDLE, "b"))["status"]["environments"]) == {DEV, PROD}
