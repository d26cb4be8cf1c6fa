"""A Graph gets the gates that exist when it is created or extended, also those that the cache has not seen."""

from __future__ import annotations

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.translation.recorded import spec_hash
from kardinal.promotion.translation.repository import Features
from kardinal.runtime import Manager
from kardinal_controller.attestations import Attestations
from kardinal_controller.bundles import GraphKeeper
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.accounts import AccountRights
from tests.bundles.reading import node_of
from tests.support.identities import SYSTEM_NAMESPACE
from tests.support.names import DEV, POLICIES, PROD
from tests.support.objects import bundle, gate, pipeline
from tests.support.registry import REGISTRY
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
