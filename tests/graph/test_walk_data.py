"""Objects and the data that flow between them."""

from __future__ import annotations

import pytest

from kardinal.graph.identity import GRAPH_LABEL, TEMPLATE_HASH
from kardinal.graph.status import graph_status
from kardinal.objects import CONFIG_MAP, SECRET
from tests.graph.cluster import NAMESPACE, Cluster, Engine, config, data, status


def test_a_template_is_created_in_the_namespace_of_the_graph_with_its_marks(cluster: Cluster) -> None:
    assert Engine(cluster, config("a", {"k": "v"})).states() == {"a": "Ready"}
    obj = cluster.find(CONFIG_MAP, "a")
    assert obj is not None
    assert obj["metadata"]["labels"].keys() == {GRAPH_LABEL, f"a.g.{NAMESPACE}.internal.kro.run/type"}
    assert TEMPLATE_HASH in obj["metadata"]["annotations"]
    assert obj["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "experimental.kro.run/v1alpha1",
            "kind": "Graph",
            "name": "g",
            "uid": "uid-of-g",
            "controller": True,
        }
    ]


def test_a_node_comes_after_the_one_it_mentions_wherever_it_is_declared(cluster: Cluster) -> None:
    engine = Engine(cluster, config("b", name="${a.metadata.name}-x"), config("a"))
    assert engine.states() == {"a": "Ready", "b": "Ready"}
    assert engine.writes() == ["apply a", "apply a-x"]


def test_values_keep_their_types_and_maps_are_copied_whole(cluster: Cluster) -> None:
    a = config("a", {"n": 3, "m": {"x": [1, {"y": None}]}})
    Engine(cluster, a, config("b", {"n": "${a.data.n}", "m": "${a.data.m}"})).rest()
    assert data(cluster, "b") == {"n": 3, "m": {"x": [1, {"y": None}]}}


def test_several_expressions_make_one_text(cluster: Cluster) -> None:
    nodes = config("a", {"x": 1}), config("b", {"y": True}), config("c", {"t": "p-${a.data.x}-${b.data.y}-s"})
    Engine(cluster, *nodes).rest()
    assert data(cluster, "c") == {"t": "p-1-true-s"}


def test_text_of_more_than_64_kib_is_an_error(cluster: Cluster) -> None:
    long = config("b", {"t": "${a.data.x}${a.data.x}"}), config("c", {"t": "${a.data.x}${a.data.y}"})
    outcomes = Engine(cluster, config("a", {"x": "x" * 40_000, "y": "y" * 25_536}), *long).rest()
    assert outcomes["b"].message == "spec.nodes[1].template.data.t: the text is longer than 64 KiB"
    assert outcomes["c"].state == "Ready"


def test_status_names_the_first_20_dependencies_of_a_node(cluster: Cluster) -> None:
    absent = [
        {"id": f"n{number}", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"n{number}"}}}
        for number in range(30)
    ]
    engine = Engine(cluster, *absent, config("z", dependsOn=[node["id"] for node in absent]))
    outcomes = engine.walk().outcomes
    shown = graph_status({"metadata": {}}, outcomes, error=None, revision=None, now=engine.now)
    [waiting] = [node["waitingFor"] for node in shown["nodes"] if node["id"] == "z"]
    assert len(waiting) == 20


def test_labels_and_reserved_words_are_fields_like_others(cluster: Cluster) -> None:
    a = config("a")
    a["template"]["metadata"]["labels"] = {"k/v": "blue"}
    Engine(cluster, a, config("b", {"t": '${a.metadata.labels["k/v"]} ${a.metadata.namespace}'})).rest()
    assert data(cluster, "b") == {"t": f"blue {NAMESPACE}"}


def test_an_escaped_expression_stays_text_for_good(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", {"t": "$${b.x} and !schedule.isWeekend"}))
    engine.rest()
    assert data(cluster, "a") == {"t": "${b.x} and !schedule.isWeekend"}
    engine.writes()
    engine.rest()
    assert engine.writes() == []


def test_an_expression_that_arrives_as_data_stays_data(cluster: Cluster) -> None:
    cluster.create(CONFIG_MAP, "outside", data={"t": "${evil.x}"})
    ref = {"id": "o", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "outside"}}}
    Engine(cluster, ref, config("b", {"t": "${o.data.t}", "u": "-${o.data.t}-"})).rest()
    assert data(cluster, "b") == {"t": "${evil.x}", "u": "-${evil.x}-"}


def test_a_graph_without_nodes_has_nothing_to_do(cluster: Cluster) -> None:
    assert Engine(cluster).states() == {}


def test_a_node_waits_for_the_field_it_needs(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a"), config("b", {"x": "${a.status.x}"}))
    outcome = engine.rest()["b"]
    assert (outcome.state, outcome.reason, outcome.waiting_for) == ("Pending", "WaitingForData", ("a.status.x",))
    status(cluster, "a", x="now")
    assert engine.states() == {"a": "Ready", "b": "Ready"}
    assert data(cluster, "b") == {"x": "now"}


def test_ready_when_is_health_and_holds_nothing(cluster: Cluster) -> None:
    a = config("a", {"x": "1"}, readyWhen=["${a.status.ok}"])
    assert Engine(cluster, a, config("b", {"x": "${a.data.x}"})).states() == {"a": "NotReady", "b": "Ready"}


@pytest.mark.parametrize("condition", ["${a.data.x + 1 == 2}", "${a.status.none}", "${a.data.x}", "${1 / 0 == 1}"])
def test_a_ready_condition_that_fails_is_only_not_ready(cluster: Cluster, condition: str) -> None:
    a = config("a", {"x": "text"}, readyWhen=[condition])
    assert Engine(cluster, a, config("b", {"x": "${a.data.x}"})).states() == {"a": "NotReady", "b": "Ready"}


def test_a_change_that_no_node_reads_writes_nothing(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", {"x": "1"}), config("b", {"x": "${a.data.x}"}))
    engine.rest()
    engine.writes()
    status(cluster, "a", unread=1)
    engine.rest()
    assert engine.writes() == []


def test_a_change_of_data_reaches_what_reads_it(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a"), config("b", {"x": "${a.?status.?x.orValue('none')}"}))
    engine.rest()
    assert data(cluster, "b") == {"x": "none"}
    status(cluster, "a", x="some")
    engine.rest()
    assert data(cluster, "b") == {"x": "some"}


def test_a_soft_reference_needs_no_node(cluster: Cluster) -> None:
    a = config("a", {"x": "${z.status.x}"})
    engine = Engine(cluster, config("z"), a, config("b", {"x": '${a.?data.?x.orValue("n/a")}'}))
    assert engine.states() == {"z": "Ready", "a": "Pending", "b": "Ready"}
    assert data(cluster, "b") == {"x": "n/a"}
    status(cluster, "z", x="there")
    assert engine.states() == {"z": "Ready", "a": "Ready", "b": "Ready"}
    assert data(cluster, "b") == {"x": "there"}


def test_an_optional_without_value_leaves_its_field_out(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a"), config("b", {"x": "${a.status.?x}", "l": ["${a.status.?x}", "y"]}))
    status_absent = engine.rest()["b"]
    assert status_absent.state == "Pending"
    status(cluster, "a", other=1)
    engine.rest()
    assert data(cluster, "b") == {"l": ["y"]}


def test_has_on_absent_data_waits_in_a_body_and_is_false_in_a_condition(cluster: Cluster) -> None:
    b = config("b", {"x": "${has(a.status.x) && a.status.x == 1}"})
    c = config("c", readyWhen=["${has(c.status.x) && c.status.x == 1}"])
    engine = Engine(cluster, config("a"), b, c)
    assert engine.states() == {"a": "Ready", "b": "Pending", "c": "NotReady"}
    assert engine.rest()["b"].waiting_for == ("a.status",)


@pytest.mark.parametrize(
    ("value", "reason"),
    [("${a.data.x + 1}", "ExpressionError"), ("-${a.data}-", "ExpressionError"), ("-${null}-", "ExpressionError")],
)
def test_a_wrong_expression_is_an_error_of_its_node_that_blocks_what_follows(
    cluster: Cluster, value: str, reason: str
) -> None:
    b = config("b", {"x": value})
    engine = Engine(cluster, config("a", {"x": "text"}), b, config("c", {"x": "${b.data.x}"}), config("d"))
    outcomes = engine.rest()
    assert {node: outcome.state for node, outcome in outcomes.items()} == {
        "a": "Ready",
        "b": "Error",
        "c": "Blocked",
        "d": "Ready",
    }
    assert outcomes["b"].reason == reason
    assert "spec.nodes[1].template.data.x" in str(outcomes["b"].message)


def test_a_secret_in_a_failing_expression_stays_secret(cluster: Cluster) -> None:
    cluster.create(SECRET, "s", data={"token": "hunter2"})
    ref = {"id": "s", "ref": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}}
    for expression in ("${s.data.token + 1}", "${int(s.data.token)}", "${s.data[s.data.token]}", "-${s.data}-"):
        engine = Engine(cluster, ref, config("b", {"x": expression}), name=f"g{len(expression)}")
        assert "hunter2" not in repr([(o.reason, o.message, o.waiting_for) for o in engine.rest().values()])


def test_names_must_be_texts_and_objects_distinct(cluster: Cluster) -> None:
    nodes = config("a", {"n": 3}), config("b", name="${a.data.n}"), config("c", name="a")
    outcomes = Engine(cluster, *nodes).rest()
    assert outcomes["b"].reason == "InvalidObject"
    assert outcomes["c"].reason == "DuplicateKey"


def test_values_and_lists_of_secrets_are_read_like_others(cluster: Cluster) -> None:
    cluster.create(SECRET, "s", data={"token": "hunter2"})
    ref = {"id": "s", "ref": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}}
    computed = {"id": "v", "def": {"token": "${s.data.token}"}}
    listed = {"id": "w", "watch": {"apiVersion": "v1", "kind": "Secret", "selector": {}}}
    reader = config("b", {"x": "${v.token}", "n": "${size(w)}"})
    assert Engine(cluster, ref, computed, listed, reader).states() == dict.fromkeys(("s", "v", "w", "b"), "Ready")
    assert data(cluster, "b") == {"x": "hunter2", "n": 1}
