"""Graphs that a Graph of a person makes: each is walked on its own, and goes with its item."""

from __future__ import annotations

import pytest

from kardinal.kube import Client
from kardinal.objects import CONFIG_MAP, GRAPH, JsonObject
from kardinal_controller.graphs import GraphsOfPersons
from tests.graph.cluster import config
from tests.graph.program import IDENTITY, GraphEngine, graph, states, text
from tests.support.accounts import make_account, rule
from tests.support.names import TEAM
from tests.support.world import World


@pytest.mark.case("A82")
async def test_each_item_has_a_graph_whose_expressions_it_evaluates_itself(world: World) -> None:
    graphs = rule("*", on="graphs", group=GRAPH.group)
    await make_account(world, "deployer", rule("*", on="configmaps"), graphs)

    def build(client: Client) -> GraphEngine:
        return GraphEngine(client, clock=world.clock, owners=[GraphsOfPersons()])

    await world.run(build, identity=IDENTITY)
    inner = graph(config("a", name="a-${item}"), config("b", {"x": "$${a.metadata.name}"}, name="b-${item}"))
    inner["metadata"] = {"name": "inner-${item}"}
    inner["spec"]["serviceAccountName"] = "deployer"
    ready = ["${inner.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')}"]
    node: JsonObject = {"id": "inner", "forEach": "['one', 'two']", "template": inner, "readyWhen": ready}
    outer = graph(node, name="outer")
    outer["spec"]["serviceAccountName"] = "deployer"
    await world.apply(outer)
    assert await states(world, "outer") == {"inner": "Ready"}
    assert [await text(world, f"b-{item}") for item in ("one", "two")] == ["x=a-one", "x=a-two"]
    node["forEach"] = "['two']"
    await world.apply(outer)
    await world.settle()
    assert [obj["metadata"]["name"] for obj in await world.objects(GRAPH, TEAM)] == ["inner-two", "outer"]
    assert sorted(obj["metadata"]["name"] for obj in await world.objects(CONFIG_MAP, TEAM)) == ["a-two", "b-two"]
    await world.delete(GRAPH, "outer")
    await world.settle()
    assert await world.objects(GRAPH, TEAM) == await world.objects(CONFIG_MAP, TEAM) == []
