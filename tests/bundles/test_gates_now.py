"""A gate that was there before a Bundle holds it, whether or not the control plane has heard of it."""

from __future__ import annotations

import pytest

from kardinal.api import Bundle, Pipeline
from kardinal.objects import JsonObject
from kardinal.runtime import Manager
from kardinal.translation.repository import Features
from kardinal_controller.bundles import GraphKeeper
from kardinal_controller.caches import Caches
from tests.bundles.looks import node_of
from tests.support.names import DEV, POLICIES, PROD
from tests.support.objects import bundle, gate, pipeline
from tests.support.world import World


@pytest.fixture
def keeper(world: World) -> GraphKeeper:
    """One whose caches have heard of nothing: their manager is never started."""
    return GraphKeeper(
        Caches(Manager(world.client, clock=world.clock, name="deaf")),
        world.client,
        clock=world.clock,
        features=Features(allow_local_repositories=True),
        policy_namespaces=(POLICIES,),
    )


def nodes(graph: JsonObject) -> list[str]:
    return [node["id"] for node in graph["spec"]["nodes"]]


async def test_a_new_bundle_is_held_by_a_gate_of_a_moment_ago(world: World, keeper: GraphKeeper) -> None:
    way, what, *_ = await world.apply(
        pipeline("file:///repo", environments=[DEV, PROD]),
        bundle("b"),
        gate("soak", "false", namespace=POLICIES),
        gate("team", "false"),
        gate(f"b-{PROD}-old", "false", labels={"kardinal.io/bundle": "old"}),
    )
    graph = await keeper.create(Pipeline.model_validate(way), Bundle.model_validate(what))
    assert nodes(graph) == [
        "bundle",
        "freeze",
        node_of(DEV),
        node_of(PROD, "soak"),
        node_of(PROD, "team"),
        node_of(PROD),
    ]


async def test_a_target_that_moves_on_meets_a_gate_of_a_moment_ago(world: World, keeper: GraphKeeper) -> None:
    way, what = await world.apply(
        pipeline("file:///repo", environments=[DEV, PROD]), bundle("b", intent={"target": DEV})
    )
    graph = await keeper.create(Pipeline.model_validate(way), Bundle.model_validate(what))
    assert nodes(graph) == ["bundle", "freeze", node_of(DEV)]
    _, what = await world.apply(gate("soak", "false", namespace=POLICIES), bundle("b"))
    graph = await keeper.extend(graph, Pipeline.model_validate(way), Bundle.model_validate(what))
    assert nodes(graph) == ["bundle", "freeze", node_of(DEV), node_of(PROD, "soak"), node_of(PROD)]
