"""Data that flow from object to object, beside an API server."""

from __future__ import annotations

import pytest

from kardinal.graph.identity import GRAPH_LABEL, TEMPLATE_HASH
from kardinal.kube import Client
from kardinal.objects import CONFIG_MAP, DEPLOYMENT, JsonObject
from kardinal.promotion.kinds import POLICY_GATE
from tests.graph.cluster import config
from tests.graph.program import (
    IDENTITY,
    KINDS,
    GraphEngine,
    TrustedGraphs,
    Writes,
    condition,
    existing,
    graph,
    made_by_graphs,
    nodes_of,
    set_data,
    set_status,
    start_engine,
    states,
    text,
)
from tests.support.names import TEAM
from tests.support.world import World


@pytest.mark.case("A01")
async def test_template_is_made_beside_its_graph_with_the_marks_of_its_node(world: World) -> None:
    await start_engine(world)
    [applied] = await world.apply(graph(config("a", {"k": "v"})))
    assert await states(world) == {"a": "Ready"}
    for type_, reason in (("Accepted", "Compiled"), ("Compiled", "Compiled"), ("Ready", "Ready")):
        assert (await condition(world, type_))[:2] == ("True", reason)
    made = await world.get(CONFIG_MAP, "a")
    metadata = made["metadata"]
    assert made["data"] == {"k": "v"}
    assert metadata["labels"].keys() == {GRAPH_LABEL, f"a.g.{TEAM}.internal.kro.run/type"}
    assert TEMPLATE_HASH in metadata["annotations"]
    [owner] = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Graph", applied["metadata"]["uid"], True)


@pytest.mark.case("A02")
async def test_node_comes_after_the_one_that_it_mentions(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("b", name="${a.metadata.name}-x"), config("a")))
    assert await states(world) == {"a": "Ready", "b": "Ready"}
    first, second = [int((await world.get(CONFIG_MAP, name))["metadata"]["resourceVersion"]) for name in ("a", "a-x")]
    assert first < second


def deployment(identifier: str, **spec: object) -> JsonObject:
    """Return a node that makes a Deployment of no pods, whose spec has numbers, lists and maps."""
    labels = {"app": "x"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}}
    wanted = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod, **spec}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": identifier}, "spec": wanted}
    return {"id": identifier, "template": body}


@pytest.mark.case("A03")
async def test_numbers_stay_numbers_and_maps_are_copied_whole(world: World) -> None:
    def build(client: Client) -> GraphEngine:
        return GraphEngine(client, clock=world.clock, owners=[TrustedGraphs(client, None, kinds=(*KINDS, DEPLOYMENT))])

    await world.run(build, identity=IDENTITY)
    copy = {"minReadySeconds": "${a.spec.minReadySeconds}", "selector": "${a.spec.selector}"}
    node = deployment("b", **copy, template="${a.spec.template}")
    await world.apply(graph(deployment("a", minReadySeconds=3), node))
    assert await states(world) == {"a": "Ready", "b": "Ready"}
    a, b = [(await world.get(DEPLOYMENT, name))["spec"] for name in ("a", "b")]
    assert b["minReadySeconds"] == 3
    assert (b["selector"], b["template"]) == (a["selector"], a["template"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("p-${a.data.x}-${other.data.y}-s", "p-1-2-s", marks=pytest.mark.case("A04")),
        pytest.param('${a.metadata.labels["k/v"]} ${a.metadata.name}', "blue a", marks=pytest.mark.case("A05")),
        pytest.param("$${a.data.x}", "${a.data.x}", marks=pytest.mark.case("A06")),
        pytest.param("${'}'}${\"{\"}", "}{", marks=pytest.mark.case("A07")),
        pytest.param("${string(whole.a.b)}", "1", marks=pytest.mark.case("A07")),
        pytest.param("${theirs.data.t} -${theirs.data.t}-", "${evil.x} -${evil.x}-", marks=pytest.mark.case("A09")),
    ],
)
async def test_value_is_what_its_expressions_say_also_in_a_later_walk(world: World, value: str, expected: str) -> None:
    await world.apply(existing("theirs", {"t": "${evil.x}"}))
    await start_engine(world)
    a = config("a", {"x": "1"})
    a["template"]["metadata"]["labels"] = {"k/v": "blue"}
    theirs = {"id": "theirs", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}}
    whole = {"id": "whole", "def": '${{"a": {"b": 1}}}'}
    await world.apply(graph(config("b", {"t": value}), theirs, whole, config("other", {"y": "2"}), a))
    assert set((await states(world)).values()) == {"Ready"}
    assert await text(world, "b") == f"t={expected}"
    writes = Writes(world)
    await set_data(world, "a", unread="1")
    assert await writes.take() == []
    assert await text(world, "b") == f"t={expected}"


@pytest.mark.case("A08")
async def test_expression_of_another_program_is_copied_as_it_is(world: World) -> None:
    await start_engine(world)
    body = {"apiVersion": POLICY_GATE.api_version, "kind": POLICY_GATE.kind, "metadata": {"name": "weekend"}}
    await world.apply(graph({"id": "weekend", "template": body | {"spec": {"expression": "!schedule.isWeekend"}}}))
    assert await states(world) == {"weekend": "Ready"}
    assert (await world.get(POLICY_GATE, "weekend"))["spec"]["expression"] == "!schedule.isWeekend"


@pytest.mark.case("A10")
async def test_graph_without_nodes_is_ready(world: World) -> None:
    await start_engine(world)
    await world.apply(graph())
    assert (await condition(world, "Accepted"))[:2] == ("True", "Compiled")
    assert (await condition(world, "Ready"))[:2] == ("True", "Ready")


@pytest.mark.case("A22")
async def test_node_waits_for_the_field_that_it_needs(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a"), config("b", {"x": "${a.data.x}"})))
    waiting = (await nodes_of(world))["b"]
    assert (waiting["state"], waiting["reason"]) == ("Pending", "WaitingForData")
    assert await made_by_graphs(world) == {"a"}
    await set_data(world, "a", x="now")
    assert await states(world) == {"a": "Ready", "b": "Ready"}
    assert await text(world, "b") == "x=now"


@pytest.mark.case("A23")
async def test_ready_condition_holds_no_other_node(world: World) -> None:
    await start_engine(world)
    await world.apply(
        graph(config("a", {"x": "1"}, readyWhen=["${a.data.ok == 'yes'}"]), config("b", {"x": "${a.data.x}"}))
    )
    assert await states(world) == {"a": "NotReady", "b": "Ready"}
    assert (await condition(world, "Ready"))[:2] == ("Unknown", "NotReady")
    await set_data(world, "a", ok="yes")
    assert (await condition(world, "Ready"))[:2] == ("True", "Ready")


@pytest.mark.case("A24")
async def test_ready_condition_that_fails_is_not_ready_and_no_error(world: World) -> None:
    await start_engine(world)
    failing = ["${%s.data.x + 1 == 2}", "${%s.data.none == 'x'}", "${%s.data.x}", "${1 / 0 == size(%s.data)}"]
    nodes = [config(f"n{index}", {"x": "text"}, readyWhen=[each % f"n{index}"]) for index, each in enumerate(failing)]
    await world.apply(graph(*nodes, config("b", {"x": "${n0.data.x + n1.data.x + n2.data.x + n3.data.x}"})))
    assert await states(world) == dict.fromkeys(("n0", "n1", "n2", "n3"), "NotReady") | {"b": "Ready"}


@pytest.mark.case("A26")
async def test_change_that_no_expression_reads_writes_nothing(world: World) -> None:
    await start_engine(world)
    body = {"apiVersion": POLICY_GATE.api_version, "kind": POLICY_GATE.kind, "metadata": {"name": "a"}}
    await world.apply(
        graph(
            {"id": "a", "template": body | {"spec": {"expression": "true"}}}, config("b", {"x": "${a.metadata.name}"})
        )
    )
    writes = Writes(world)
    await writes.take()
    await set_status(world, POLICY_GATE, "a", reason="unread")
    assert await writes.take() == []


@pytest.mark.case("A29")
async def test_soft_reference_has_its_default_until_there_is_a_value(world: World) -> None:
    await start_engine(world)
    soft = config("b", {"x": '${a.?data.?x.orValue("n/a")}'})
    await world.apply(graph(config("z"), config("a", {"x": "${z.data.x}"}), soft))
    assert await states(world) == {"z": "Ready", "a": "Pending", "b": "Ready"}
    assert await text(world, "b") == "x=n/a"
    await set_data(world, "z", x="there")
    assert await states(world) == {"z": "Ready", "a": "Ready", "b": "Ready"}
    assert await text(world, "b") == "x=there"


@pytest.mark.case("A30")
async def test_optional_without_a_value_leaves_its_field_out(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", {"y": "1"}), config("b", {"x": "${a.data.?x}", "y": "${a.data.?y}"})))
    assert await states(world) == {"a": "Ready", "b": "Ready"}
    assert await text(world, "b") == "y=1"


@pytest.mark.case("A31")
async def test_presence_in_absent_data_waits_in_a_body_and_is_false_in_a_condition(world: World) -> None:
    await start_engine(world)
    body = config("b", {"x": "${string(has(a.status.x) && a.status.x == 1)}"})
    waits = config("c", readyWhen=["${has(c.status.x) && c.status.x == 1}"])
    await world.apply(graph(config("a"), body, waits))
    assert await states(world) == {"a": "Ready", "b": "Pending", "c": "NotReady"}
    assert (await nodes_of(world))["b"]["waitingFor"] == ["a.status"]
