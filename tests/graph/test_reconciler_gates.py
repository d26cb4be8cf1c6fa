"""Gates and conditions of nodes, beside an API server."""

from __future__ import annotations

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal.objects.conditions import format_time
from kardinal.promotion.kinds import POLICY_GATE, PROMOTION_STEP
from tests.graph.cluster import config
from tests.graph.program import (
    Writes,
    condition,
    graph,
    made_by_graphs,
    nodes_of,
    set_data,
    set_status,
    start_engine,
    states,
    text,
)
from tests.graph.promotions import BUNDLE_NODE, complete, gate, step
from tests.support.names import TEAM
from tests.support.objects import bundle
from tests.support.world import World


async def start_promotion(world: World, *nodes: JsonObject) -> None:
    [owner] = await world.apply(bundle("b1"))
    await start_engine(world)
    await world.apply(graph(BUNDLE_NODE, *map(complete, nodes), owner=owner))
    await world.settle()


async def verify(world: World, environment: str, state: str = "Verified") -> None:
    await set_status(world, PROMOTION_STEP, f"b1-{environment}", state=state)
    await world.settle()


async def answer(world: World, name: str) -> None:
    now = format_time(world.clock.now())
    await set_status(world, POLICY_GATE, f"b1-{name}", ready=True, lastEvaluatedAt=now)
    await world.settle()


@pytest.mark.case("A32")
async def test_environment_follows_when_the_one_before_is_verified(world: World) -> None:
    await start_promotion(world, step("dev"), step("staging", upstream="dev"))
    assert await made_by_graphs(world, PROMOTION_STEP) == {"b1-dev"}
    await verify(world, "dev", "HealthChecking")
    assert await made_by_graphs(world, PROMOTION_STEP) == {"b1-dev"}
    writes = Writes(world)
    await verify(world, "dev")
    assert await writes.take() == ["patch graphs/status/g", "patch promotionsteps/b1-staging"]
    assert await states(world) == {"bundle": "Ready", "dev": "Ready", "staging": "NotReady"}


@pytest.mark.case("A33")
async def test_step_waits_for_all_its_gates(world: World) -> None:
    gates = gate("soak", upstream="staging"), gate("hours", upstream="staging")
    prod = step("prod", upstream="staging", gates=("soak", "hours"))
    await start_promotion(world, step("dev"), step("staging", upstream="dev"), *gates, prod)
    for environment in ("dev", "staging"):
        await verify(world, environment)
    assert await made_by_graphs(world, POLICY_GATE) == {"b1-soak", "b1-hours"}
    waiting = (await nodes_of(world))["prod"]
    assert (waiting["state"], waiting["reason"]) == ("Pending", "Gated")
    assert sorted(waiting["waitingFor"]) == ["hours.status.ready == true", "soak.status.ready == true"]
    await answer(world, "soak")
    assert (await nodes_of(world))["prod"]["waitingFor"] == ["hours.status.ready == true"]
    assert await world.find(PROMOTION_STEP, "b1-prod") is None
    await answer(world, "hours")
    assert (await world.get(PROMOTION_STEP, "b1-prod"))["spec"]["requiredGates"] == ["b1-soak", "b1-hours"]


GATED = config("a", propagateWhen=["${a.data.open == 'yes'}"])


@pytest.mark.case("A34")
async def test_gate_that_closes_keeps_the_object_until_it_opens(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(GATED, config("b", {"x": "${a.data.x}"})))
    await world.settle()
    await set_data(world, "a", open="yes", x="1")
    await world.settle()
    made = await world.get(CONFIG_MAP, "b")
    await set_data(world, "a", open="no", x="2")
    await world.settle()
    await set_data(world, "a", x="3")
    await world.settle()
    assert await world.get(CONFIG_MAP, "b") == made
    await set_data(world, "a", open="yes")
    await world.settle()
    assert await text(world, "b") == "x=3"
    assert (await world.get(CONFIG_MAP, "b"))["metadata"]["uid"] == made["metadata"]["uid"]


@pytest.mark.case("A37")
async def test_node_that_asks_whether_another_is_ready_is_held_until_it_is(world: World) -> None:
    await start_engine(world)
    a = config("a", readyWhen=["${a.data.ok == 'yes'}"])
    await world.apply(graph(a, config("b", {"x": "1"}, propagateWhen=["${a.ready()}"])))
    assert await states(world) == {"a": "NotReady", "b": "Pending"}
    await set_data(world, "a", ok="yes")
    assert await states(world) == {"a": "Ready", "b": "Ready"}
    await set_data(world, "a", ok="no")
    await world.settle()
    await world.apply(graph(a, config("b", {"x": "2"}, propagateWhen=["${a.ready()}"])))
    await world.settle()
    assert await text(world, "b") == "x=1"
    await set_data(world, "a", ok="yes")
    assert await states(world) == {"a": "Ready", "b": "Ready"}
    assert await text(world, "b") == "x=2"


@pytest.mark.case("A38")
async def test_gate_that_fails_is_closed_and_no_error(world: World) -> None:
    await start_engine(world)
    a = config("a", {"x": "text"}, propagateWhen=["${a.data.none == 'x'}"])
    c = config("c", {"x": "text"}, propagateWhen=["${c.data.x + 1 == 2}"])
    await world.apply(graph(a, config("b", {"x": "${a.data.x}"}), c, config("d", {"x": "${c.data.x}"})))
    assert await states(world) == {"a": "Ready", "b": "Pending", "c": "Ready", "d": "Pending"}
    found = await nodes_of(world)
    assert found["a"]["gate"]["open"] is found["c"]["gate"]["open"] is False
    assert [found[node]["reason"] for node in ("b", "d")] == ["Gated", "Gated"]


@pytest.mark.case("A40")
async def test_soft_reference_is_not_held_by_a_gate(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(GATED, config("b", {"x": "${a.?data.?x.orValue('none')}"})))
    assert await text_of(world, "b") == "x=none"
    await set_data(world, "a", x="1")
    assert await text_of(world, "b") == "x=1"


async def text_of(world: World, name: str) -> str:
    await world.settle()
    return await text(world, name)


@pytest.mark.case("A42")
async def test_excluded_dependency_counts_more_than_closed_gates(world: World) -> None:
    await start_engine(world)
    other = config("b", propagateWhen=["${b.data.open == 'yes'}"])
    last = config("d", {"x": "${a.metadata.name}${b.metadata.name}${c.metadata.name}"})
    await world.apply(graph(GATED, other, config("c", includeWhen=["${false}"]), last))
    assert await states(world) == {"a": "Ready", "b": "Ready", "c": "Excluded", "d": "Excluded"}


@pytest.mark.case("A43")
async def test_only_what_stands_behind_the_gate_waits(world: World) -> None:
    await start_engine(world)
    b = config("b", {"x": "${a.metadata.name}"}, propagateWhen=["${b.data.open == 'yes'}"])
    d = config("d", {"x": "${b.data.x}${c.data.x}"})
    await world.apply(graph(config("a"), b, config("c", {"x": "${a.metadata.name}"}), d))
    assert await states(world) == {"a": "Ready", "b": "Ready", "c": "Ready", "d": "Pending"}
    await set_data(world, "b", open="yes")
    assert (await states(world))["d"] == "Ready"
    assert await text(world, "d") == "x=aa"


@pytest.mark.case("A45")
async def test_node_that_is_not_included_makes_nothing_and_counts_for_nothing(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", includeWhen=["${1 == 2}"]), config("b", {"x": "${a.data.x}"}), config("c")))
    assert await states(world) == {"a": "Excluded", "b": "Excluded", "c": "Ready"}
    assert await made_by_graphs(world) == {"c"}
    assert (await condition(world, "Ready"))[:2] == ("True", "Ready")


@pytest.mark.case("A46")
async def test_node_that_is_no_longer_included_goes_after_its_dependents(world: World) -> None:
    await start_engine(world)
    a = config("a", includeWhen=["${flag.data.on == 'yes'}"])
    await world.apply(graph(config("flag"), a, config("b", {"x": "${a.metadata.name}"})))
    await world.settle()
    await set_data(world, "flag", on="yes")
    assert await states(world) == {"flag": "Ready", "a": "Ready", "b": "Ready"}
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"metadata": {"finalizers": ["test.io/hold"]}})
    await set_data(world, "flag", on="no")
    assert await states(world) == {"flag": "Ready", "a": "Excluded", "b": "Excluded"}
    assert await made_by_graphs(world) == {"flag", "a", "b"}
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"metadata": {"finalizers": None}})
    await world.settle()
    assert await made_by_graphs(world) == {"flag"}
