"""Facts that expressions read of a node besides its data: whether it is ready and updated, and what it depends on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kardinal import cel
from kardinal.graph import GraphError, compile_graph
from kardinal.objects import CONFIG_MAP
from tests.graph.cluster import Cluster, Engine, config, data, status

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def test_gate_of_the_consumer_waits_until_a_node_is_ready(cluster: Cluster) -> None:
    a = config("a", {"x": "1"}, readyWhen=["${a.status.ok == true}"])
    engine = Engine(cluster, a, config("b", {"x": "${a.data.x}"}, propagateWhen=["${a.ready()}"]))
    assert engine.rest()["b"].reason == "Gated"
    status(cluster, "a", ok=True)
    assert engine.states() == {"a": "Ready", "b": "Ready"}
    status(cluster, "a", ok=False)
    a["template"]["data"]["x"] = "2"
    engine.rest()
    assert data(cluster, "b") == {"x": "1"}
    status(cluster, "a", ok=True)
    engine.rest()
    assert data(cluster, "b") == {"x": "2"}


def test_own_gate_reads_whether_the_node_is_ready(cluster: Cluster) -> None:
    a = config("a", readyWhen=["${a.status.ok == true}"], propagateWhen=["${a.ready()}"])
    engine = Engine(cluster, a, config("b", {"x": "${a.metadata.name}"}))
    assert engine.states() == {"a": "NotReady", "b": "Pending"}
    status(cluster, "a", ok=True)
    assert engine.states() == {"a": "Ready", "b": "Ready"}


def test_soft_dependency_has_a_value_only_where_it_is_known(cluster: Cluster) -> None:
    a = config("a", {"x": "${later.data.x}"})
    later = {"id": "later", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}}}
    engine = Engine(cluster, later, a, config("b", {"ready": "${string(a.ready().orValue(false))}"}))
    assert engine.states() == {"later": "Pending", "a": "Pending", "b": "Ready"}
    assert data(cluster, "b") == {"ready": "false"}
    cluster.create(CONFIG_MAP, "later", data={"x": "1"})
    engine.rest()
    assert data(cluster, "b") == {"ready": "true"}


def test_hard_dependency_waits(cluster: Cluster) -> None:
    later = {"id": "later", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}}}
    engine = Engine(cluster, later, config("b", {"ready": "${string(later.ready())}"}))
    assert engine.rest()["b"].waiting_for == ("later",)


def test_list_is_ready_when_all_its_objects_are(cluster: Cluster) -> None:
    many = config("many", name="e-${item}", forEach="['a', 'b']", readyWhen=["${many.status.ok == true}"])
    none = config("none", name="n-${item}", forEach="[]")
    told = config("told", {"x": "${string(many.ready())},${string(none.ready())}"})
    engine = Engine(cluster, many, none, told)
    engine.rest()
    assert data(cluster, "told") == {"x": "false,true"}
    for name in ("e-a", "e-b"):
        status(cluster, name, ok=True)
    engine.rest()
    assert data(cluster, "told") == {"x": "true,true"}


def test_watch_with_conditions_that_selects_nothing_is_not_ready(cluster: Cluster) -> None:
    watch = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"selector": {"app": "x"}}}
    pods = {"id": "pods", "watch": watch, "readyWhen": ["${pods.all(p, p.status.ok)}"]}
    engine = Engine(cluster, pods, config("told", {"x": "${string(pods.ready())}"}))
    engine.rest()
    assert data(cluster, "told") == {"x": "false"}


def test_node_behind_a_closed_gate_is_not_updated(cluster: Cluster) -> None:
    a = config("a", {"x": "1"}, propagateWhen=["${a.?status.?open.orValue(true)}"])
    told = config("told", {"x": "${string(b.updated())}"})
    engine = Engine(cluster, a, config("b", {"x": "${a.data.x}"}), told)
    engine.rest()
    assert data(cluster, "told") == {"x": "true"}
    status(cluster, "a", open=False)
    engine.rest()
    assert data(cluster, "told") == {"x": "false"}


def test_dependencies_are_the_data_of_the_nodes_before(cluster: Cluster) -> None:
    names = {"x": "${dependencies().map(d, d.metadata.name).join(',')}"}
    engine = Engine(cluster, config("a"), config("b"), config("c", names, dependsOn=["b", "a"]), config("d", names))
    engine.rest()
    assert [data(cluster, name) for name in ("c", "d")] == [{"x": "a,b"}, {"x": ""}]


def test_condition_over_all_dependencies(cluster: Cluster) -> None:
    last = config("last", dependsOn=["a", "b"], readyWhen=["${dependencies().all(d, d.status.ok == true)}"])
    engine = Engine(cluster, config("a"), config("b"), last)
    assert engine.rest()["last"].state == "NotReady"
    for name in ("a", "b"):
        status(cluster, name, ok=True)
    assert engine.rest()["last"].state == "Ready"


@pytest.mark.parametrize(
    ("word", "expression"), [("readyWhen", "a.ready()"), ("readyWhen", "a.updated()"), ("propagateWhen", "a.updated()")]
)
def test_node_does_not_decide_by_what_is_decided(word: str, expression: str) -> None:
    node = config("a") | {word: [expression]}
    with pytest.raises(GraphError, match="is not known before the condition is"):
        compile_graph({"nodes": [node]})


@pytest.mark.parametrize("expression", ["nope.ready()", "a.ready(1)", "has(a.ready())", "[a].all(x, x.ready())"])
def test_other_calls_do_not_compile(expression: str) -> None:
    with pytest.raises(GraphError) as caught:
        compile_graph({"nodes": [config("a"), config("b", {"x": f"${{{expression}}}"})]})
    assert caught.value.reason == "ExpressionError"


def test_missing_lifecycle_is_named_as_it_is_written() -> None:
    assert cel.compile("dev.ready() && true").evaluate({}, now=NOW) == cel.Missing("dev.ready()")


def test_expression_that_overran_is_tried_again_when_a_node_becomes_ready(cluster: Cluster) -> None:
    many = {"id": "many", "def": "${lists.range(400)}"}
    costly = "b.ready() ? 'cheap' : string(many.map(x, many.map(y, x + y)).size())"
    b = config("b", readyWhen=["${c.status.ok == true}"])
    engine = Engine(cluster, many, config("c"), b, config("told", {"x": f"${{{costly}}}"}))
    assert engine.rest()["told"].state == "Error"
    status(cluster, "c", ok=True)
    assert engine.states()["told"] == "Ready"
    assert data(cluster, "told") == {"x": "cheap"}
