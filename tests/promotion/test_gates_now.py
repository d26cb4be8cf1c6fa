"""A gate that was there before a Bundle holds it, whether or not the control plane has heard of it."""

from __future__ import annotations

import pytest

from kardinal.api import Bundle, Pipeline
from kardinal.kube import JsonObject
from kardinal.runtime import Manager
from kardinal_controller.caches import Caches
from kardinal_controller.promotion import GraphKeeper
from kardinal_controller.promotion.repository import Features
from tests.support.objects import bundle, gate, pipeline
from tests.support.world import World

ORGANISATION = "platform-policies"


@pytest.fixture
def keeper(world: World) -> GraphKeeper:
    """One whose caches have heard of nothing: their manager is never started."""
    return GraphKeeper(
        Caches(Manager(world.client, clock=world.clock, name="deaf")),
        world.client,
        clock=world.clock,
        features=Features(allow_local_repositories=True),
        policy_namespaces=(ORGANISATION,),
    )


def nodes(graph: JsonObject) -> list[str]:
    return [node["id"] for node in graph["spec"]["nodes"]]


async def test_a_new_bundle_is_held_by_a_gate_of_a_moment_ago(world: World, keeper: GraphKeeper) -> None:
    way, what, *_ = await world.apply(
        pipeline("file:///repo", environments=["dev", "prod"]),
        bundle("b"),
        gate("soak", "false", namespace=ORGANISATION),
        gate("team", "false"),
        gate("b-prod-old", "false", labels={"kardinal.io/bundle": "old"}),
    )
    graph = await keeper.create(Pipeline.model_validate(way), Bundle.model_validate(what))
    assert nodes(graph) == ["bundle", "freeze", "dev", "soak0prod", "team0prod", "prod"]


async def test_a_target_that_moves_on_meets_a_gate_of_a_moment_ago(world: World, keeper: GraphKeeper) -> None:
    way, what = await world.apply(
        pipeline("file:///repo", environments=["dev", "prod"]), bundle("b", intent={"target": "dev"})
    )
    graph = await keeper.create(Pipeline.model_validate(way), Bundle.model_validate(what))
    assert nodes(graph) == ["bundle", "freeze", "dev"]
    _, what = await world.apply(gate("soak", "false", namespace=ORGANISATION), bundle("b"))
    graph = await keeper.extend(graph, Pipeline.model_validate(way), Bundle.model_validate(what))
    assert nodes(graph) == ["bundle", "freeze", "dev", "soak0prod", "prod"]
