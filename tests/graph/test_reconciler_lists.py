"""Nodes with forEach, beside an API server."""

from __future__ import annotations

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from tests.graph.cluster import config
from tests.graph.program import (
    Writes,
    condition,
    existing,
    graph,
    made_by_graphs,
    nodes_of,
    set_data,
    start_engine,
    states,
    text,
)
from tests.support.world import World

TEAMS: JsonObject = {
    "id": "teams",
    "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "teams"}},
}
QUOTA = config("quota", {"team": "${team}"}, name="quota-${team}", forEach={"team": "${teams.data.names.split(',')}"})
READER = config("reader", {"n": "${string(size(quota))}", "teams": "${quota.map(q, q.data.team).join('-')}"})


async def start_with(world: World, *teams: str) -> None:
    await world.apply(existing("teams", {"names": ",".join(teams)}))
    await start_engine(world)


@pytest.mark.case("A58")
async def test_each_item_has_its_object_and_others_read_the_list(world: World) -> None:
    await start_with(world, "red", "green", "blue")
    await world.apply(graph(TEAMS, QUOTA, READER))
    assert await states(world) == {"teams": "Ready", "quota": "Ready", "reader": "Ready"}
    assert (await nodes_of(world))["quota"]["children"] == {"total": 3, "ready": 3}
    assert await text(world, "quota-green") == "team=green"
    assert await text(world, "reader") == "n=3,teams=red-green-blue"


@pytest.mark.case("A59")
async def test_another_order_writes_nothing(world: World) -> None:
    await start_with(world, "red", "green", "blue")
    await world.apply(graph(TEAMS, QUOTA))
    writes = Writes(world)
    await writes.take()
    await set_data(world, "teams", names="blue,red,green")
    assert await writes.take() == []


@pytest.mark.case("A60")
async def test_item_that_goes_takes_its_object_along_and_no_other(world: World) -> None:
    await start_with(world, "red", "green", "blue")
    await world.apply(graph(TEAMS, QUOTA))
    await world.settle()
    kept = [await world.get(CONFIG_MAP, f"quota-{team}") for team in ("red", "blue")]
    await set_data(world, "teams", names="red,blue")
    await world.settle()
    assert await made_by_graphs(world) == {"quota-red", "quota-blue"}
    assert [await world.get(CONFIG_MAP, f"quota-{team}") for team in ("red", "blue")] == kept


@pytest.mark.case("A63")
async def test_list_alone_has_the_variable_item(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("c", name="c-${item}", forEach='["x","y"]')))
    assert await states(world) == {"c": "Ready"}
    assert await made_by_graphs(world) == {"c-x", "c-y"}


@pytest.mark.case("A65")
async def test_refused_object_stops_none_of_the_others(world: World) -> None:
    await start_with(world, "red", "NO_NAME", "blue")
    await world.apply(graph(TEAMS, QUOTA, READER))
    assert await states(world) == {"teams": "Ready", "quota": "Error", "reader": "Blocked"}
    assert (await nodes_of(world))["quota"]["children"] == {"total": 3, "ready": 2}
    assert await made_by_graphs(world) == {"quota-red", "quota-blue"}


@pytest.mark.case("A66")
async def test_list_of_too_many_items_makes_nothing(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("c", name="c-${string(item)}", forEach="${lists.range(1001)}")))
    assert (await nodes_of(world))["c"]["reason"] == "TooManyItems"
    assert (await condition(world, "Ready"))[:2] == ("False", "Error")
    assert await made_by_graphs(world) == set()
