"""The engine against an API server: what it writes, and what the author of a Graph reads."""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest

from kardinal.graph import FINALIZER
from kardinal.objects import CONFIG_MAP, GRAPH, GRAPH_REVISION
from kardinal.objects.conditions import format_time
from kardinal.promotion.kinds import POLICY_GATE, PROMOTION_STEP
from tests.graph.cluster import config
from tests.graph.program import (
    Writes,
    condition,
    graph,
    made_by_graphs,
    set_status,
    start_engine,
    states,
    text,
)
from tests.graph.promotions import promotion_nodes
from tests.support.names import TEAM
from tests.support.objects import bundle
from tests.support.world import World


async def test_a_promotion_walks_with_one_write_for_each_thing_that_happens(world: World) -> None:
    (owner,) = await world.apply(bundle("b1"))
    await start_engine(world)
    writes = Writes(world)
    await world.apply(graph(*promotion_nodes(), owner=owner))
    assert await writes.take() == [
        "create graphrevisions",
        "patch graphs/g",
        "patch graphs/status/g",
        "patch promotionsteps/b1-dev",
    ]
    await set_status(world, PROMOTION_STEP, "b1-dev", state="Promoting")
    await set_status(world, PROMOTION_STEP, "b1-dev", state="HealthChecking")
    assert await writes.take() == []
    await set_status(world, PROMOTION_STEP, "b1-dev", state="Verified")
    assert await writes.take() == ["patch graphs/status/g", "patch policygates/b1-soak"]
    now = format_time(world.clock.now())
    await set_status(world, POLICY_GATE, "b1-soak", ready=False, lastEvaluatedAt=now)
    assert await writes.take() == []
    await set_status(world, POLICY_GATE, "b1-soak", ready=True, lastEvaluatedAt=now)
    assert await writes.take() == ["patch graphs/status/g", "patch promotionsteps/b1-prod"]
    await set_status(world, PROMOTION_STEP, "b1-prod", state="Verified")
    assert await writes.take() == ["patch graphs/status/g"]
    assert set((await states(world)).values()) == {"Ready"}
    await world.idle(timedelta(hours=1))
    assert await writes.take() == []


async def test_a_restart_writes_nothing(world: World) -> None:
    await world.apply(bundle("b1"))
    engine = await start_engine(world)
    await world.apply(graph(*promotion_nodes(), config("a", {"x": "1"})))
    await world.settle()
    await world.stop(engine)
    writes = Writes(world)
    await start_engine(world)
    assert await writes.take() == []


async def test_the_status_says_what_is_waited_for(world: World) -> None:
    await world.apply(bundle("b1"))
    await start_engine(world)
    await world.apply(graph(*promotion_nodes()))
    await world.settle()
    obj = await world.get(GRAPH, "g")
    assert obj["metadata"]["finalizers"] == [FINALIZER]
    status = obj["status"]
    assert status["observedGeneration"] == 1
    assert status["revision"] == "g-g00001"
    assert status["topologicalOrder"] == ["bundle", "dev", "soak", "prod", "freeze"]
    assert {entry["type"]: (entry["status"], entry["reason"]) for entry in status["conditions"]} == {
        "Accepted": ("True", "Compiled"),
        "Compiled": ("True", "Compiled"),
        "Ready": ("Unknown", "Pending"),
    }
    dev = status["nodes"][1]
    soak = status["nodes"][2]
    assert (dev["state"], dev["message"]) == ("NotReady", 'waiting for dev.status.state == "Verified"')
    assert dev["gate"] == {"open": False, "expr": 'dev.status.state == "Verified"'}
    assert dev["object"]["name"] == "b1-dev"
    assert (soak["state"], soak["reason"], soak["waitingFor"]) == (
        "Pending",
        "Gated",
        ['dev.status.state == "Verified"'],
    )
    revision = await world.get(GRAPH_REVISION, "g-g00001")
    assert revision["spec"]["nodes"] == promotion_nodes()


async def test_time_dependent_condition_wakes_by_timer(world: World) -> None:
    await world.apply(bundle("b1"))
    await start_engine(world)
    nodes = promotion_nodes()
    # The gate is ready before its upstream is: only freshness is left to hold prod.
    nodes[3]["propagateWhen"] = []
    late = config(
        "late", {"x": "${soak.metadata.name}"}, includeWhen=["${now() > timestamp(soak.status.lastEvaluatedAt)}"]
    )
    await world.apply(graph(*nodes, late))
    await world.settle()
    await set_status(world, PROMOTION_STEP, "b1-dev", state="Verified")
    await world.settle()
    stamp = format_time(world.clock.now() + timedelta(seconds=2))
    await set_status(world, POLICY_GATE, "b1-soak", ready=True, lastEvaluatedAt=stamp)
    assert (await states(world))["late"] == "Excluded"
    await world.live(timedelta(seconds=3))
    assert (await states(world))["late"] == "Ready"


@pytest.mark.case("A18", "A19")
async def test_a_generation_that_does_not_compile_leaves_the_last_good_one_in_charge(world: World) -> None:
    await start_engine(world)
    good = config("a", {"x": "1"}), config("b", {"x": "${a.metadata.uid}"})
    await world.apply(graph(*good))
    await world.settle()
    uid = await text(world, "b")
    await world.apply(graph(*good, config("c", {"x": "${aa.x}"}), config("d")))
    assert await condition(world, "Accepted") == (
        "False",
        "ExpressionError",
        "spec.nodes[2].template.data.x (node c): unknown identifier 'aa' (did you mean a?)",
    )
    assert (await condition(world, "Ready"))[:2] == ("False", "NotCompiled")
    assert (await world.get(GRAPH, "g"))["status"]["observedGeneration"] == 2
    assert await world.find(CONFIG_MAP, "d") is None
    await world.client.patch(CONFIG_MAP, "a", TEAM, {"data": {"x": "changed"}})
    await world.settle()
    assert await text(world, "a") == "x=1"
    assert [event["type"] for event in await world.events("ExpressionError")] == ["Warning"]
    await world.apply(graph(*good, config("c", {"x": "${a.data.x}"}), config("d")))
    assert set((await states(world)).values()) == {"Ready"}
    assert await text(world, "b") == uid
    assert (await world.get(GRAPH, "g"))["status"]["revision"] == "g-g00003"


async def test_a_graph_that_never_compiled_makes_nothing(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a"), config("b", {"x": "${nope.x}"})))
    assert (await condition(world, "Accepted"))[:2] == ("False", "ExpressionError")
    assert await states(world) == {}
    assert await world.find(CONFIG_MAP, "a") is None


@pytest.mark.case("A80")
async def test_reordering_nodes_writes_nothing_but_the_generation(world: World) -> None:
    await start_engine(world)
    nodes = config("a"), config("b", {"x": "${a.metadata.name}"})
    await world.apply(graph(*nodes))
    writes = Writes(world)
    await writes.take()
    await world.apply(graph(*reversed(nodes)))
    assert await writes.take() == ["patch graphs/status/g"]
    assert (await world.get(GRAPH, "g"))["status"]["revision"] == "g-g00001"


async def test_added_nodes_are_made_without_touching_the_others(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"})))
    writes = Writes(world)
    await writes.take()
    await world.apply(graph(config("a", {"x": "1"}), config("b", {"x": "${a.data.x}"})))
    assert await writes.take() == [
        "create graphrevisions",
        "patch configmaps/b",
        "patch graphs/status/g",
    ]


async def test_a_nested_graph_is_an_object_like_others(world: World) -> None:
    await start_engine(world)
    inner = graph(config("a"), config("b", {"x": "$${a.metadata.name}-${outer.data.x}"}), name="inner")
    del inner["metadata"]["namespace"]
    await world.apply(graph(config("outer", {"x": "1"}), {"id": "child", "template": inner}, name="outer"))
    await world.settle()
    assert await text(world, "b") == "x=a-1"
    await world.delete(GRAPH, "outer")
    await world.settle()
    assert await world.objects(GRAPH, TEAM) == []
    assert await world.find(CONFIG_MAP, "b") is None


@pytest.mark.case("A86")
async def test_graphs_of_two_bundles_run_beside_each_other(world: World) -> None:
    await start_engine(world)
    for number in (1, 2):
        [owner] = await world.apply(bundle(f"b{number}"))
        nodes = orjson.loads(orjson.dumps(promotion_nodes()).replace(b'"b1', b'"b%d' % number))
        await world.apply(graph(*nodes, name=f"g{number}", owner=owner))
    for number in (1, 2):
        assert (await states(world, f"g{number}"))["dev"] == "NotReady"
    await set_status(world, PROMOTION_STEP, "b2-dev", state="Verified")
    await world.settle()
    assert await made_by_graphs(world, POLICY_GATE) == {"b2-soak"}
    labels = [set((await world.get(PROMOTION_STEP, f"b{n}-dev"))["metadata"]["labels"].items()) for n in (1, 2)]
    assert labels[0].isdisjoint(labels[1])


async def test_many_graphs_run_beside_each_other(world: World) -> None:
    await start_engine(world)
    for number in range(8):
        name = f"g{number}"
        nodes = config("a", name=f"{name}-a"), config("b", {"x": "${a.metadata.name}"}, name=f"{name}-b")
        await world.apply(graph(*nodes, name=name))
    await world.settle()
    assert [await text(world, f"g{number}-b") for number in range(8)] == [f"x=g{number}-a" for number in range(8)]


async def test_a_lost_revision_is_stored_again_and_old_ones_are_not_kept_for_ever(world: World) -> None:
    await start_engine(world)
    for number in range(8):
        await world.apply(graph(config("a", {"x": str(number)})))
        await world.settle()
    names = sorted(revision["metadata"]["name"] for revision in await world.objects(GRAPH_REVISION, TEAM))
    assert names == [f"g-g{number:05}" for number in range(3, 9)]
    await world.delete(GRAPH_REVISION, "g-g00008")
    await world.settle()
    assert await world.find(GRAPH_REVISION, "g-g00008") is not None


async def test_a_kind_that_is_not_served_waits_and_says_so(world: World) -> None:
    await start_engine(world)
    await world.apply(
        graph({"id": "d", "ref": {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "d"}}})
    )
    status, reason, message = await condition(world, "Ready")
    assert (status, reason) == ("Unknown", "Pending")
    assert "example.com/v1 Widget is not installed" in message
