"""How often a Graph is walked: once for each change that concerns it, and never for its own writes."""

from __future__ import annotations

import gc
import os
import time
from datetime import timedelta

import pytest

from kardinal.graph.walk_types import Remembered
from kardinal.objects import CONFIG_MAP, GRAPH, JsonObject
from kardinal_controller.graphs.interests import Interests
from tests.graph.cluster import config
from tests.graph.program import Walks, Writes, existing, graph, start_engine, states, text
from tests.support.names import TEAM
from tests.support.world import World

STARTED = 100 if "GRAPHS" in os.environ else 20
"""Graphs of twenty objects; as many as a test that may take long tries."""


async def test_graph_is_walked_once_for_its_creation_and_not_for_its_own_writes(world: World) -> None:
    walks = Walks(world, await start_engine(world))
    await world.apply(graph(config("a", {"x": "1"}), config("b", {"x": "${a.metadata.uid}"})))
    assert await walks.take() == 1
    assert await states(world) == {"a": "Ready", "b": "Ready"}
    await world.apply(graph(config("a", {"x": "2"}), config("b", {"x": "${a.metadata.uid}"})))
    assert await walks.take() == 1
    assert await text(world, "a") == "x=2"


async def test_answers_to_applies_do_not_stay_in_memory_beside_the_caches(world: World) -> None:
    walks = Walks(world, await start_engine(world))
    watch = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"selector": {"of": "g"}}}
    labelled = config("c") | {"template": existing("c", of="g")}
    await world.apply(
        graph(config("a"), config("b", {"x": "${a.metadata.uid}"}), labelled, {"id": "w", "watch": watch})
    )
    assert await walks.take() == 1
    remembered = [each for each in gc.get_objects() if isinstance(each, Remembered)]
    read = [each.outcome.value if each.selection is not None else [each.live] for each in remembered]
    # Only an answer has them.
    assert not [obj for objects in read for obj in objects if obj is not None and "managedFields" in obj["metadata"]]


async def test_change_by_another_hand_walks_the_graphs_that_it_concerns_alone(world: World) -> None:
    reader = {"id": "r", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}}
    await world.apply(existing("theirs", {"x": "1"}))
    walks = Walks(world, await start_engine(world))
    await world.apply(graph(reader, config("b", {"x": "${r.data.x}"}), name="reads"), graph(config("c"), name="other"))
    assert await walks.take() == 2
    await world.client.patch(CONFIG_MAP, "theirs", TEAM, {"data": {"x": "2"}})
    assert await walks.take() == 1
    assert await text(world, "b") == "x=2"
    await world.apply(existing("nobodys"))
    assert await walks.take() == 0
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"data": {"x": "by hand"}})
    assert await walks.take() == 1
    assert await text(world, "b") == "x=2"


async def test_graph_that_loses_its_finalizer_gets_it_back(world: World) -> None:
    walks = Walks(world, await start_engine(world))
    await world.apply(graph(config("a")))
    assert await walks.take() == 1
    await world.client.patch(GRAPH, "g", TEAM, {"metadata": {"finalizers": None}})
    assert await walks.take() == 1
    assert (await world.get(GRAPH, "g"))["metadata"]["finalizers"]


@pytest.mark.virtual_time("a Graph is walked again after half an hour")
async def test_graph_is_compared_each_half_hour_and_only_a_difference_is_written(world: World) -> None:
    engine = await start_engine(world)
    walks = Walks(world, engine)
    writes = Writes(world)
    await world.apply(graph(config("a", {"x": "1"}), config("b", {"x": "${a.data.x}"})))
    assert await walks.take() == 1
    await writes.take()
    await world.live(timedelta(minutes=40))
    assert await walks.take() == 1
    assert await writes.take() == []
    assert engine.manager.metrics.get_sample_value("kardinal_graph_timer_fires_total") == 1


@pytest.mark.virtual_time("a Graph is walked again after half an hour")
async def test_drift_whose_event_was_lost_is_corrected_within_the_half_hour_by_one_write(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    walks = Walks(world, await start_engine(world))
    writes = Writes(world)
    await world.apply(graph(config("a", {"x": "1"}), config("b", {"x": "${a.data.x}"})))
    assert await walks.take() == 1
    await writes.take()
    # The cache gets the change, and no Graph is told.
    monkeypatch.setattr(Interests, "concerned", lambda *_: [])
    await world.client.patch(CONFIG_MAP, "a", TEAM, {"data": {"x": "by hand"}})
    assert await walks.take() == 0
    await world.live(timedelta(minutes=40))
    assert await writes.take() == ["patch configmaps/a"]
    assert await text(world, "a") == await text(world, "b") == "x=1"
    await world.live(timedelta(hours=2))
    assert await writes.take() == []


def chain(number: int) -> JsonObject:
    """Return a Graph of twenty objects, each of which reads the one before."""
    first = config("n0", {"x": "1"}, name=f"g{number}-0")
    rest = [
        config(
            f"n{index}",
            {"x": f"${{n{index - 1}.data.x}}"},
            name=f"g{number}-{index}",
            readyWhen=[f"${{n{index}.data.x == '1'}}"],
        )
        for index in range(1, 20)
    ]
    return graph(first, *rest, name=f"g{number}")


@pytest.mark.case("A90")
@pytest.mark.timeout(300)
async def test_many_graphs_start_within_seconds_and_write_nothing(world: World) -> None:
    engine = await start_engine(world)
    await world.apply(*map(chain, range(STARTED)))

    async def are_ready() -> bool:
        found = [each.get("status", {}).get("nodes", ()) for each in await world.objects(GRAPH, TEAM)]
        return all(nodes and all(node["state"] == "Ready" for node in nodes) for nodes in found)

    await world.until(are_ready, real_seconds=250)
    await world.stop(engine)
    writes = Writes(world)
    began = time.process_time()
    walks = Walks(world, await start_engine(world))
    await walks.take()
    assert time.process_time() - began < STARTED / 10
    await world.idle(timedelta(minutes=1))
    assert await writes.take() == []
    assert await walks.take() == 0


async def test_metrics_count_what_is_done_to_objects_and_the_states_of_nodes(world: World) -> None:
    engine = await start_engine(world)
    wrong = {"id": "w", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "absent"}}}
    await world.apply(graph(config("a"), config("b"), wrong), graph({"id": "c"}, name="refused"))
    await world.settle()

    def value(name: str, **labels: str) -> float | None:
        return engine.manager.metrics.get_sample_value(f"kardinal_graph_{name}", labels)

    assert value("applies_total", result="applied") == 2
    assert [value("compiles_total", result=result) for result in ("accepted", "refused")] == [1, 1]
    assert (value("nodes", state="Ready"), value("nodes", state="Pending")) == (2, 1)
    await world.delete(GRAPH, "g")
    await world.settle()
    assert value("prunes_total", result="deleted") == 2
    assert (value("nodes", state="Ready"), value("nodes", state="Pending")) == (0, 0)
