"""Graphs that are not accepted, beside an API server: what their author reads, and that nothing is made."""

from __future__ import annotations

import pytest

from kardinal.objects import JsonObject
from tests.graph.cluster import config
from tests.graph.program import condition, graph, made_by_graphs, start_engine, states, text
from tests.support.world import World

BODY: JsonObject = config("x")["template"]
REF: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
CYCLE = (config("a", {"x": "${b.data.x}"}), config("b", {"x": "${a.data.x}"}), config("c"))
LONG_CYCLE = (
    config("a", includeWhen=["${c.data.x == '1'}"]),
    config("b", name="b-${item}", forEach="${a.data.list}"),
    config("c", {"x": "${string(size(b))}"}),
)


@pytest.mark.parametrize(
    ("nodes", "reason", "words"),
    [
        pytest.param(CYCLE, "DependencyError", ["a -> b -> a"], marks=pytest.mark.case("A11")),
        pytest.param(LONG_CYCLE, "DependencyError", ["a -> c -> b -> a"], marks=pytest.mark.case("A12")),
        pytest.param(
            [config("fooBar"), config("b", {"x": "${foobar.x}"})],
            "ExpressionError",
            ["spec.nodes[1].template.data.x (node b)", "unknown identifier 'foobar' (did you mean fooBar?)"],
            marks=pytest.mark.case("A13"),
        ),
        *(
            pytest.param(
                [config("a"), {"id": wrong, "ref": REF}], "DeclarationError", [words], marks=pytest.mark.case("A14")
            )
            for wrong, words in (
                ("a", "already the id of spec.nodes[0]"),
                ("A", "already the id of spec.nodes[0]"),
                ("my-app", "'my-app' is no id"),
                ("a_b", "'a_b' is no id"),
                ("x" * 64, "is no id"),
                ("true", "'true' is a reserved word"),
            )
        ),
        *(
            pytest.param(
                [config("a"), {"id": "b", **wrong}], "DeclarationError", [words], marks=pytest.mark.case("A15")
            )
            for wrong, words in (
                ({"template": BODY, "ref": REF}, "exactly one of"),
                ({}, "needs one of"),
                ({"template": BODY, "propageWhen": ["${true}"]}, "did you mean propagateWhen?"),
            )
        ),
        pytest.param(
            [config("a"), config("b", propagateWhen=["${b.data.x == 'x'}", "${b.data.x ==}"])],
            "ExpressionError",
            ["spec.nodes[1].propagateWhen[1]"],
            marks=pytest.mark.case("A16"),
        ),
        pytest.param(
            [config("a", {"x": "${1 +}"}), config("b", {"x": "${nope.y}"})],
            "ExpressionError",
            ["spec.nodes[0].template.data.x (node a)", "spec.nodes[1].template.data.x (node b)"],
            marks=pytest.mark.case("A17"),
        ),
        pytest.param(
            [config("a"), config("b", name="b-${x}", forEach={"x": "${['1']}", "y": "${['2']}"})],
            "DeclarationError",
            ["exactly one variable"],
            marks=pytest.mark.case("A63"),
        ),
    ],
)
async def test_graph_that_is_wrong_says_where_and_makes_nothing(
    world: World, nodes: list[JsonObject], reason: str, words: list[str]
) -> None:
    await start_engine(world)
    await world.apply(graph(*nodes))
    accepted = await condition(world, "Accepted")
    assert accepted[:2] == ("False", reason)
    assert all(each in accepted[2] for each in words), accepted[2]
    assert (await condition(world, "Ready"))[:2] == ("False", "NotCompiled")
    assert await states(world) == {}
    assert await made_by_graphs(world) == set()


@pytest.mark.case("A20")
async def test_variable_with_the_id_of_a_node_is_no_reference(world: World) -> None:
    await start_engine(world)
    a = config("a", {"x": "${['1', '2'].filter(b, b != '1')[0]}"})
    await world.apply(graph(a, config("b", {"y": "${a.data.x}"})))
    assert await states(world) == {"a": "Ready", "b": "Ready"}
    assert await text(world, "b") == "y=2"
