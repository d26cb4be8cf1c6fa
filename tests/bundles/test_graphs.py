"""A Graph gets the gates that exist when it is created or extended, also those that the cache has not seen."""

from __future__ import annotations

import pytest

from kardinal.kube import Conflict
from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.translation.recorded import spec_hash
from kardinal.promotion.translation.repository import Features
from kardinal.runtime import Manager
from kardinal_controller.attestations import Attestations
from kardinal_controller.bundles import GraphKeeper
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.accounts import AccountRights
from tests.bundles.reading import node_of
from tests.support.authored import authored_graph, make_promoter, manual_bundle
from tests.support.identities import SYSTEM_NAMESPACE
from tests.support.names import DEV, POLICIES, PROD, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller
from tests.support.registry import REGISTRY
from tests.support.repository import GitRepository
from tests.support.world import World


@pytest.fixture
def keeper(world: World) -> GraphKeeper:
    """One whose caches are empty: their manager is never started."""
    return GraphKeeper(
        Caches(Manager(world.client, clock=world.clock, name="deaf")),
        world.client,
        clock=world.clock,
        features=Features(registry=REGISTRY, allow_local_repositories=True),
        policy_namespaces=(POLICIES,),
        attestations=Attestations(world.client, namespace=SYSTEM_NAMESPACE),
        expressions=ExpressionCompiler(),
        rights=AccountRights(world.client, clock=world.clock),
    )


def nodes(graph: JsonObject) -> list[str]:
    return [node["id"] for node in graph["spec"]["nodes"]]


async def test_a_new_graph_has_the_gates_that_the_cache_has_not_seen(world: World, keeper: GraphKeeper) -> None:
    way, what, *_ = await world.apply(
        pipeline("file:///repo", environments=[DEV, PROD]),
        bundle("b"),
        gate("soak", "false", namespace=POLICIES),
        gate("team", "false"),
        gate(f"b-{PROD}-old", "false", labels={"kardinal.io/bundle": "old"}),
    )
    graph = await keeper.translated(Pipeline.model_validate(way), Bundle.model_validate(what))
    assert nodes(graph) == [
        "bundle",
        "freeze",
        node_of(DEV),
        node_of(PROD, "soak"),
        node_of(PROD, "team"),
        node_of(PROD),
    ]


async def test_an_extended_graph_has_the_gates_that_the_cache_has_not_seen(world: World, keeper: GraphKeeper) -> None:
    way, what = await world.apply(
        pipeline("file:///repo", environments=[DEV, PROD]), bundle("b", intent={"target": DEV})
    )
    graph = await keeper.translated(Pipeline.model_validate(way), Bundle.model_validate(what))
    assert nodes(graph) == ["bundle", "freeze", node_of(DEV)]
    _, what = await world.apply(gate("soak", "false", namespace=POLICIES), bundle("b"))
    what["status"] = {"graph": {"hash": spec_hash(graph)}}
    graph = await keeper.extension(graph, Pipeline.model_validate(way), Bundle.model_validate(what))
    assert nodes(graph) == ["bundle", "freeze", node_of(DEV), node_of(PROD, "soak"), node_of(PROD)]


async def test_graph_that_changes_after_it_was_admitted_is_not_claimed(world: World, keeper: GraphKeeper) -> None:
    """Change it before the Bundle becomes its controller."""
    await make_promoter(world)
    way, _ = await world.apply(pipeline("file:///repo", environments=[DEV]), manual_bundle())
    await world.apply(await authored_graph(world))
    what = Bundle.model_validate(await world.get(BUNDLE, "app-1"))
    admitted, _ = await keeper.admitted(Pipeline.model_validate(way), what)
    changed = await authored_graph(world)
    changed["spec"]["nodes"] = []
    await world.apply(changed)
    with pytest.raises(Conflict):
        await keeper.claim(admitted, what)
    assert "ownerReferences" not in (await world.get(GRAPH, "app-1"))["metadata"]


async def test_graph_of_the_same_name_is_not_claimed_for_one_that_was_admitted(
    world: World, keeper: GraphKeeper
) -> None:
    await make_promoter(world)
    way, _ = await world.apply(pipeline("file:///repo", environments=[DEV]), manual_bundle())
    graph = await authored_graph(world)
    await world.apply(graph)
    what = Bundle.model_validate(await world.get(BUNDLE, "app-1"))
    admitted, _ = await keeper.admitted(Pipeline.model_validate(way), what)
    await world.delete(GRAPH, "app-1")
    await world.apply(graph)
    with pytest.raises(Conflict):
        await keeper.claim(admitted, what)


async def test_bundle_that_died_before_it_claimed_its_graph_claims_it(
    world: World, repository: GitRepository, keeper: GraphKeeper
) -> None:
    """Write the record of the Graph, and nothing after it, as a process does that is killed then."""
    await make_promoter(world)
    way, _ = await world.apply(pipeline(repository, provider="git", environments=[DEV]), manual_bundle())
    await world.apply(await authored_graph(world))
    what = Bundle.model_validate(await world.get(BUNDLE, "app-1"))
    admitted, found = await keeper.admitted(Pipeline.model_validate(way), what)
    record = {"uid": admitted["metadata"]["uid"], "hash": spec_hash(admitted)}
    assert found.to_json() == record
    await world.client.patch(BUNDLE, "app-1", TEAM, {"status": {"graph": record}}, subresource="status")
    await start_controller(world)
    after = await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Promoting")
    assert after["status"]["graph"] == record
    assert (await world.get(GRAPH, "app-1"))["metadata"]["uid"] == record["uid"]
