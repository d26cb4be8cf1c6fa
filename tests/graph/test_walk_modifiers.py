"""Nodes that compute, depend without data, take fields by force, look again, or are late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.graph import GraphError, compile_graph
from kardinal.objects import CONFIG_MAP, JsonObject
from tests.graph.cluster import START, Cluster, Engine, config, data, status


def problem_of(*nodes: JsonObject) -> tuple[str, str]:
    """Return the reason and the path of the only problem."""
    with pytest.raises(GraphError) as caught:
        compile_graph({"nodes": list(nodes)})
    (problem,) = caught.value.problems
    return problem.reason, problem.path


def test_a_def_is_a_value_without_an_object(cluster: Cluster) -> None:
    computed = {"id": "names", "def": {"full": "${a.data.x}-${a.data.x}", "n": "${size(a.data.x)}"}}
    engine = Engine(cluster, config("a", {"x": "ab"}), computed, config("b", {"t": "${names.full}", "n": "${names.n}"}))
    outcome = engine.rest()["names"]
    assert (outcome.kind, outcome.state, outcome.object) == ("def", "Ready", None)
    assert data(cluster, "b") == {"t": "ab-ab", "n": 2}
    assert cluster.names(CONFIG_MAP) == {"a", "b"}


def test_a_def_may_be_one_expression_and_any_value(cluster: Cluster) -> None:
    numbers = {"id": "numbers", "def": "${[1, 2, 3].filter(n, n > 1)}"}
    Engine(cluster, numbers, config("b", {"n": "${numbers}"})).rest()
    assert data(cluster, "b") == {"n": [2, 3]}


def test_a_def_waits_for_its_data_and_is_ready_by_its_own_condition(cluster: Cluster) -> None:
    total = {"id": "total", "def": {"n": "${a.status.n}"}, "readyWhen": ["${total.n > 1}"]}
    engine = Engine(cluster, config("a"), total)
    assert engine.states()["total"] == "Pending"
    status(cluster, "a", n=1)
    assert engine.states()["total"] == "NotReady"
    status(cluster, "a", n=2)
    assert engine.states()["total"] == "Ready"


def test_a_def_that_overran_is_tried_again_when_its_data_changes(cluster: Cluster) -> None:
    items = {"id": "items", "def": "${a.data.items}"}
    slow = "${items.all(x, items.all(y, items.all(z, x + y + z < 1000)))}"
    engine = Engine(cluster, config("a", {"items": list(range(60))}), items, config("b", {"t": slow}))
    assert engine.states()["b"] == "Error"
    engine.nodes[0] = config("a", {"items": [1]})
    assert engine.states()["b"] == "Ready"


def test_a_node_comes_after_those_that_it_depends_on(cluster: Cluster) -> None:
    engine = Engine(cluster, config("b", dependsOn=["a"]), config("a", includeWhen=["${flag.data.on == 'yes'}"]),
                    config("flag", {"on": "no"}))  # fmt: skip
    assert engine.states() == {"flag": "Ready", "a": "Excluded", "b": "Excluded"}
    engine.nodes[2] = config("flag", {"on": "yes"})
    assert engine.states() == {"flag": "Ready", "a": "Ready", "b": "Ready"}
    writes = [write for write in engine.writes() if write in ("apply a", "apply b")]
    assert writes == ["apply a", "apply b"]


@pytest.mark.parametrize(
    ("nodes", "path"),
    [
        ([config("a", dependsOn=["b"])], "spec.nodes[0].dependsOn[0]"),
        ([config("a", dependsOn=["a"])], "spec.nodes[0].dependsOn[0]"),
        ([config("a", dependsOn=["b"]), config("b", {"x": "${a.data.x}"})], "spec.nodes[0]"),
    ],
)
def test_a_dependency_that_cannot_be_is_refused(nodes: list[JsonObject], path: str) -> None:
    assert problem_of(*nodes) == ("DependencyError", path)


def test_the_kind_of_an_object_may_be_computed(cluster: Cluster) -> None:
    source = config("a", {"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}})
    engine = Engine(cluster, source, {"id": "b", "template": "${a.data.object}"})
    assert engine.states() == {"a": "Ready", "b": "Ready"}
    assert cluster.find(CONFIG_MAP, "made") is not None
    engine.nodes[0] = config("a", {"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}})
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"a", "other"}


@pytest.mark.parametrize(
    "made",
    [
        3,
        {"kind": "ConfigMap", "metadata": {"name": "x"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}},
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x", "labels": {"internal.kro.run/graph": "another"}},
        },
    ],
)
def test_a_computed_object_that_is_none_is_an_error(cluster: Cluster, made: Any) -> None:
    engine = Engine(cluster, config("a", {"object": made}), {"id": "b", "template": "${a.data.object}"})
    outcome = engine.rest()["b"]
    assert (outcome.state, outcome.reason) == ("Error", "InvalidObject")


def test_a_text_with_something_around_its_expression_makes_no_object() -> None:
    assert problem_of(config("a"), {"id": "b", "template": "x${a.data}"}) == (
        "ExpressionError",
        "spec.nodes[1].template",
    )


def test_force_is_asked_for_only_where_it_is_declared(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a"), config("b", lifecycle={"apply": "Force"}))
    applies = engine.first().applies
    assert [(apply.node.id, apply.force, apply.correction) for apply in applies] == [
        ("a", False, False),
        ("b", True, False),
    ]


def test_a_node_is_looked_at_again_after_its_time(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a"), config("b", recheckAfter="5m"), config("c", recheckAfter="1h"))
    engine.rest()
    assert engine.walk().wake == START + timedelta(minutes=5)


def test_a_node_that_is_late_says_so_once_its_time_is_over(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", readyWhen=["${a.status.ok}"], timeout="1h"))
    assert engine.rest()["a"].reason == "NotReady"
    assert engine.walk().wake == START + timedelta(hours=1)
    engine.pass_time(minutes=59)
    assert engine.rest()["a"].reason == "NotReady"
    engine.pass_time(minutes=1)
    outcome = engine.rest()["a"]
    assert (outcome.state, outcome.reason) == ("NotReady", "TimedOut")
    assert str(outcome.message).startswith("not ready for 1h: ")
    status(cluster, "a", ok=True)
    assert engine.states() == {"a": "Ready"}
