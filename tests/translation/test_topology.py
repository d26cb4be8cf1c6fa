"""The descriptions that nodes carry, and Graphs of the version before, whose nodes carry none."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kardinal.graph import compile_graph
from kardinal.translation.topology import NODE_KEY, GateNode, StepNode, read_topology
from tests.support.objects import environment
from tests.translation.values import bundle, node, org_gate, pipeline, translated

DIAMOND = (
    environment("dev"),
    environment("eu", dependsOn=["dev"]),
    environment("us", dependsOn=["dev"]),
    environment("prod", dependsOn=["us", "eu"]),
)


def diamond() -> dict[str, Any]:
    return translated(pipeline(*DIAMOND), bundle("app-1"), [org_gate("soak", applies_to="prod")])


def without_descriptions(graph: dict[str, Any]) -> dict[str, Any]:
    """Return the Graph as version 0.1 made it."""
    older = copy.deepcopy(graph)
    for each in older["spec"]["nodes"]:
        each.pop(NODE_KEY, None)
    return older


def test_a_step_carries_its_environment_and_its_upstreams_in_order() -> None:
    assert node(diamond(), "prod")[NODE_KEY] == {"kind": "step", "environment": "prod", "upstreams": ["us", "eu"]}
    assert node(diamond(), "dev")[NODE_KEY] == {"kind": "step", "environment": "dev", "upstreams": []}


def test_a_gate_carries_its_template_and_its_environment() -> None:
    described = node(diamond(), "soak0prod")[NODE_KEY]
    assert described == {
        "kind": "gate",
        "environment": "prod",
        "gate": {"namespace": "platform-policies", "name": "soak"},
    }


def test_topology_is_read_from_what_nodes_carry_and_not_from_their_templates() -> None:
    graph = diamond()
    node(graph, "prod")["template"]["spec"]["upstreamVerified"] = "${dev.status.state}"
    assert read_topology(graph).steps["prod"] == StepNode("prod", "prod", ("us", "eu"))
    assert list(read_topology(graph).gates) == [
        GateNode("soak0prod", "prod", "platform-policies", "soak", "app-1-prod-soak")
    ]


def test_a_graph_of_the_version_before_has_the_same_topology() -> None:
    assert read_topology(without_descriptions(diamond())) == read_topology(diamond())


def test_a_graph_of_the_version_before_that_was_extended_is_read_node_by_node() -> None:
    graph, older = diamond(), without_descriptions(diamond())
    described = [each for each in graph["spec"]["nodes"] if each["id"] in ("prod", "soak0prod")]
    kept = [each for each in older["spec"]["nodes"] if each["id"] not in ("prod", "soak0prod")]
    mixed = read_topology({"spec": {"nodes": [*kept, *described]}})
    assert mixed.before("prod") == {"dev", "eu", "us"}
    assert mixed.ids == read_topology(graph).ids


def test_the_engine_passes_over_what_nodes_carry_for_others() -> None:
    assert [each.id for each in compile_graph(diamond()["spec"]).nodes]


@pytest.mark.parametrize(
    "forged",
    [
        None,
        "step",
        {"kind": "step"},
        {"kind": "step", "environment": 3, "upstreams": []},
        {"kind": "step", "environment": "prod", "upstreams": "dev"},
        {"kind": "gate", "environment": "prod", "gate": "soak"},
        {"kind": "root", "environment": "prod", "upstreams": []},
    ],
)
def test_a_description_of_the_wrong_shape_is_passed_over(forged: object) -> None:
    graph = diamond()
    node(graph, "prod")[NODE_KEY] = forged
    assert set(read_topology(graph).environments) == {"dev", "eu", "us"}


def test_an_upstream_that_no_step_stands_for_ends_the_search() -> None:
    graph = diamond()
    node(graph, "prod")[NODE_KEY]["upstreams"] = ["nowhere"]
    assert read_topology(graph).before("prod") == {"nowhere"}
