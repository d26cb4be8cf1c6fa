"""Hooks against an API server: a Graph is deleted after what they do, and says what it waits for."""

from __future__ import annotations

import pytest

from kardinal.objects import CONFIG_MAP, GRAPH, JsonObject
from tests.graph.cluster import config
from tests.graph.program import condition, graph, start_engine, states, text
from tests.support.names import TEAM
from tests.support.world import World


def backup() -> JsonObject:
    return config("backup", {"of": "${db.metadata.name}"}, finalizes="db", readyWhen=["${backup.data.done == 'yes'}"])


async def finish(world: World) -> None:
    await world.client.patch(CONFIG_MAP, "backup", TEAM, {"data": {"done": "yes"}})
    await world.settle()


@pytest.mark.case("A76")
async def test_graph_goes_after_its_hook(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("db"), config("app", {"db": "${db.metadata.name}"}), backup()))
    assert await states(world) == {"db": "Ready", "app": "Ready", "backup": "Excluded"}
    assert (await condition(world, "Ready"))[:2] == ("True", "Ready")
    await world.delete(GRAPH, "g")
    await world.settle()
    assert await text(world, "backup") == "of=db"
    assert await condition(world, "Ready") == (
        "False",
        "TeardownBlocked",
        "db is deleted when backup is Ready: waiting for backup.data.done == 'yes'",
    )
    assert sorted(obj["metadata"]["name"] for obj in await world.objects(CONFIG_MAP, TEAM)) == ["backup", "db"]
    await finish(world)
    assert await world.objects(CONFIG_MAP, TEAM) == []
    assert await world.find(GRAPH, "g") is None


@pytest.mark.case("A77")
async def test_hook_that_is_taken_out_of_the_spec_blocks_no_longer(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("db"), backup()))
    await world.settle()
    await world.delete(GRAPH, "g")
    assert (await condition(world, "Ready"))[1] == "TeardownBlocked"
    await world.client.patch(GRAPH, "g", TEAM, {"spec": {"nodes": [config("db")]}})
    await world.settle()
    assert await world.objects(CONFIG_MAP, TEAM) == []
    assert await world.find(GRAPH, "g") is None


async def test_hook_runs_after_a_restart_and_where_the_spec_no_longer_compiles(world: World) -> None:
    engine = await start_engine(world)
    await world.apply(graph(config("db"), backup()))
    await world.settle()
    await world.client.patch(GRAPH, "g", TEAM, {"spec": {"nodes": [config("db", {"x": "${nope.x}"})]}})
    await world.settle()
    await world.delete(GRAPH, "g")
    await world.stop(engine)
    await start_engine(world)
    await world.settle()
    assert await text(world, "backup") == "of=db"
    await finish(world)
    assert await world.find(GRAPH, "g") is None


async def test_node_that_is_left_out_waits_for_its_hook(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("db"), backup()))
    await world.settle()
    await world.apply(graph(config("db", includeWhen=["${false}"]), backup()))
    assert await states(world) == {"db": "Excluded", "backup": "NotReady"}
    assert (await condition(world, "Ready"))[:2] == ("False", "TeardownBlocked")
    await finish(world)
    assert await world.objects(CONFIG_MAP, TEAM) == []
    assert (await condition(world, "Ready"))[:2] == ("True", "Ready")


@pytest.mark.case("A74")
async def test_finalizer_of_another_program_holds_the_layers_below(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a"), config("b", {"x": "${a.metadata.name}"}), config("c", {"x": "${b.data.x}"})))
    await world.settle()
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"metadata": {"finalizers": ["example.com/hold"]}})
    await world.delete(GRAPH, "g")
    assert await condition(world, "Ready") == (
        "Unknown",
        "Terminating",
        f"waiting for ConfigMap {TEAM}/b to be deleted",
    )
    assert sorted(obj["metadata"]["name"] for obj in await world.objects(CONFIG_MAP, TEAM)) == ["a", "b"]
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"metadata": {"finalizers": []}})
    await world.settle()
    assert await world.objects(CONFIG_MAP, TEAM) == []
    assert await world.find(GRAPH, "g") is None
