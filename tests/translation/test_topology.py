"""The descriptions that the nodes of a Graph carry, and the topology that is read from them."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.graph import compile_graph
from kardinal.promotion.translation.topology import NODE_KEY, GateNode, StepNode, read_topology
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
