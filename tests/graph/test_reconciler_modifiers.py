"""Modifiers of nodes beside an API server: status, force, lists, Graphs inside of Graphs, and nodes that are late."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import CONFIG_MAP, EVENT, GRAPH, JsonObject, ResourceType
from kardinal.promotion.kinds import POLICY_GATE
from tests.graph.cluster import config
from tests.graph.program import Writes, condition, graph, start_engine, states, text
from tests.support.names import TEAM
from tests.support.world import World


async def test_a_template_with_status_writes_the_status_of_its_object(world: World) -> None:
    await start_engine(world)
    node: JsonObject = {
        "id": "gate",
        "template": {
            "apiVersion": POLICY_GATE.api_version,
            "kind": POLICY_GATE.kind,
            "metadata": {"name": "gate"},
            "spec": {"expression": "true"},
            "status": {"reason": "${a.data.x}"},
        },
    }
    await world.apply(graph(config("a", {"x": "said by the graph"}), node))
    assert await states(world) == {"a": "Ready", "gate": "Ready"}
    assert (await world.get(POLICY_GATE, "gate"))["status"]["reason"] == "said by the graph"
    writes = Writes(world)
    await world.client.patch(CONFIG_MAP, "a", TEAM, {"data": {"y": "no field of ours"}})
    assert await writes.take() == []


@pytest.mark.case("A69")
async def test_force_takes_a_field_of_another_manager(world: World) -> None:
    await start_engine(world)
    other = {**config("x")["template"], "metadata": {"name": "a", "namespace": TEAM}, "data": {"x": "0"}}
    await world.apply(graph(config("a")))
    await world.settle()
    await world.apply(other)
    await world.apply(graph(config("a", {"x": "1"}, lifecycle={"apply": "Force"})))
    assert await states(world) == {"a": "Ready"}
    assert await text(world, "a") == "x=1"


@pytest.mark.case("A82")
async def test_a_graph_for_each_item_evaluates_its_own_expressions(world: World) -> None:
    await start_engine(world)
    inner = [
        config("x", {"team": "${team}"}, name="x-${team}"),
        config("y", {"of": "$${x.data.team}"}, name="y-${team}"),
    ]
    child: JsonObject = {
        "id": "child",
        "forEach": {"team": "${teams.data.names.split(',')}"},
        "template": {
            "apiVersion": GRAPH.api_version,
            "kind": GRAPH.kind,
            "metadata": {"name": "child-${team}"},
            "spec": {"nodes": inner},
        },
    }
    await world.apply(graph(config("teams", {"names": "red,blue"}), child))
    assert await states(world) == {"teams": "Ready", "child": "Ready"}
    assert await text(world, "y-red") == "of=red"
    assert await text(world, "y-blue") == "of=blue"
    await world.apply(graph(config("teams", {"names": "blue"}), child))
    await world.settle()
    left = await names(world, CONFIG_MAP)
    assert {"y-blue", "x-blue"} <= left
    assert not {"y-red", "x-red"} & left


async def names(world: World, resource: ResourceType) -> set[str]:
    return {obj["metadata"]["name"] for obj in (await world.client.list(resource, TEAM)).items}


@pytest.mark.virtual_time("a node is late after an hour")
async def test_a_node_that_is_late_has_an_event(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", readyWhen=["${a.data.ok == 'yes'}"], timeout="1h")))
    assert (await condition(world, "Ready"))[1] == "NotReady"
    await world.live(timedelta(hours=1, seconds=1))
    await world.settle()
    found = await world.get(GRAPH, "g")
    assert found["status"]["nodes"][0]["reason"] == "TimedOut"
    told = await world.client.list(EVENT, TEAM)
    assert [event["note"] for event in told.items if event["reason"] == "TimedOut"] == [
        "node a is not ready for 1h: waiting for a.data.ok == 'yes'"
    ]
