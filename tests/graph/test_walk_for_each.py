"""Nodes that make an object for each item of a list."""

from __future__ import annotations

import pytest

from kardinal.graph import GraphError, compile_graph
from kardinal.objects import CONFIG_MAP, JsonObject
from tests.graph.cluster import Cluster, Engine, config, data, status

TEAMS = ["red", "green", "blue"]


def teams(*names: str) -> JsonObject:
    return config("teams", {"names": list(names)})


def quota(**modifiers: object) -> JsonObject:
    """Return a node that makes a ConfigMap for each team."""
    given = {"forEach": {"team": "${teams.data.names}"}, **modifiers}
    return config("quota", {"team": "${team}"}, name="quota-${team}", **given)


def test_each_item_has_its_object_and_other_nodes_read_the_list(cluster: Cluster) -> None:
    reader = config("reader", {"n": "${size(quota)}", "teams": "${quota.map(q, q.data.team)}"})
    engine = Engine(cluster, teams(*TEAMS), quota(), reader)
    outcome = engine.rest()["quota"]
    assert (outcome.state, outcome.children) == ("Ready", (3, 3))
    assert data(cluster, "reader") == {"n": 3, "teams": TEAMS}
    assert data(cluster, "quota-green") == {"team": "green"}


def test_a_list_alone_has_the_variable_item(cluster: Cluster) -> None:
    Engine(cluster, config("c", name="c-${item}", forEach='["x","y"]')).rest()
    assert cluster.names(CONFIG_MAP) == {"c-x", "c-y"}


def test_another_order_of_the_list_writes_nothing(cluster: Cluster) -> None:
    engine = Engine(cluster, teams(*TEAMS), quota())
    engine.rest()
    engine.writes()
    engine.nodes[0] = teams("blue", "red", "green")
    engine.rest()
    assert engine.writes() == ["apply teams"]


def test_an_item_that_goes_takes_only_its_object_with_it(cluster: Cluster) -> None:
    engine = Engine(cluster, teams(*TEAMS), quota())
    engine.rest()
    engine.writes()
    engine.nodes[0] = teams("red", "blue")
    engine.rest()
    assert engine.writes() == ["apply teams", "delete quota-green"]


def test_an_empty_list_is_ready_and_leaves_no_object(cluster: Cluster) -> None:
    engine = Engine(cluster, teams(*TEAMS), quota())
    engine.rest()
    engine.nodes[0] = teams()
    outcome = engine.rest()["quota"]
    assert (outcome.state, outcome.children) == ("Ready", (0, 0))
    assert cluster.names(CONFIG_MAP) == {"teams"}


def test_a_refused_object_keeps_none_of_the_others_back(cluster: Cluster) -> None:
    engine = Engine(cluster, teams(*TEAMS), quota(), config("after", {"n": "${size(quota)}"}))
    engine.refused_objects.add("quota-green")
    outcomes = engine.rest()
    assert cluster.names(CONFIG_MAP) == {"teams", "quota-red", "quota-blue"}
    assert (outcomes["quota"].state, outcomes["quota"].children) == ("Error", (3, 2))
    assert outcomes["after"].state == "Blocked"


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        (["red", "red"], "DuplicateKey"),
        ({"red": 1}, "InvalidList"),
        (None, "InvalidList"),
        (["red", {"not": "a name"}], "ExpressionError"),
        ([f"t{number}" for number in range(1001)], "TooManyItems"),
    ],
)
def test_a_list_that_cannot_be_made_as_a_whole_changes_nothing(cluster: Cluster, items: object, reason: str) -> None:
    engine = Engine(cluster, teams("old"), quota())
    engine.rest()
    engine.nodes[0] = config("teams", {"names": items})
    outcome = engine.rest()["quota"]
    assert (outcome.state, outcome.reason) == ("Error", reason)
    assert cluster.names(CONFIG_MAP) == {"teams", "quota-old"}


def test_a_list_that_is_not_there_yet_is_waited_for(cluster: Cluster) -> None:
    engine = Engine(cluster, config("teams"), config("c", name="c-${t}", forEach={"t": "${teams.status.names}"}))
    outcome = engine.rest()["c"]
    assert (outcome.state, outcome.waiting_for) == ("Pending", ("teams.status.names",))


def test_conditions_are_those_of_each_object_unless_they_read_the_list(cluster: Cluster) -> None:
    node = quota(readyWhen=["${quota.status.ok}", "${size(quota) >= 2}"])
    engine = Engine(cluster, teams("red"), node)
    assert engine.states()["quota"] == "NotReady"
    status(cluster, "quota-red", ok=True)
    assert engine.states()["quota"] == "NotReady"
    engine.nodes[0] = teams("red", "blue")
    assert engine.rest()["quota"].children == (2, 1)
    status(cluster, "quota-blue", ok=True)
    assert engine.states()["quota"] == "Ready"


def test_the_gate_is_open_when_that_of_every_object_is(cluster: Cluster) -> None:
    node = quota(propagateWhen=["${quota.status.ok}"])
    engine = Engine(cluster, teams("red", "blue"), node, config("after", {"n": "${size(quota)}"}))
    assert engine.states()["after"] == "Pending"
    status(cluster, "quota-red", ok=True)
    assert engine.states()["after"] == "Pending"
    status(cluster, "quota-blue", ok=True)
    assert engine.states()["after"] == "Ready"


def test_a_closed_gate_holds_all_objects_as_they_are(cluster: Cluster) -> None:
    gate = config("gate", propagateWhen=["${gate.status.open}"])
    engine = Engine(cluster, gate, teams("red"), quota(dependsOn=["gate"]))
    status_of_gate(engine, cluster, open_=True)
    assert engine.states()["quota"] == "Ready"
    status_of_gate(engine, cluster, open_=False)
    engine.nodes[1] = teams("blue")
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"gate", "teams", "quota-red"}
    status_of_gate(engine, cluster, open_=True)
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"gate", "teams", "quota-blue"}


def status_of_gate(engine: Engine, cluster: Cluster, *, open_: bool) -> None:
    engine.rest()
    status(cluster, "gate", open=open_)


def test_a_node_that_is_excluded_takes_all_its_objects_with_it(cluster: Cluster) -> None:
    engine = Engine(cluster, teams(*TEAMS), config("flag", {"on": True}), quota(includeWhen=["${flag.data.on}"]))
    engine.rest()
    engine.nodes[1] = config("flag", {"on": False})
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"teams", "flag"}


def test_values_are_computed_for_each_item(cluster: Cluster) -> None:
    lengths = {"id": "lengths", "def": "${size(team)}", "forEach": {"team": "${teams.data.names}"}}
    Engine(cluster, teams(*TEAMS), lengths, config("reader", {"n": "${lengths}"})).rest()
    assert data(cluster, "reader") == {"n": [3, 5, 4]}


def test_each_item_has_a_budget_of_its_own(cluster: Cluster) -> None:
    work = (
        "${size([1,2,3,4,5,6,7,8,9].filter(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a+b+c > team)))) }"
    )
    node = config("w", {"n": work}, name="w-${team}", forEach={"team": "${teams.data.names}"})
    engine = Engine(cluster, config("teams", {"names": list(range(40))}), node)
    assert engine.rest()["w"].children == (40, 40)


@pytest.mark.parametrize(
    ("node", "reason", "path"),
    [
        (quota(forEach={"teams": "${teams.data.names}"}), "DeclarationError", "spec.nodes[1].forEach.teams"),
        (quota(forEach={"team": "${team.names}"}), "ExpressionError", "spec.nodes[1].forEach.team"),
        (quota(forEach={"team": "${quota.names}"}), "DependencyError", "spec.nodes[1].forEach.team"),
        (config("b", {"t": "${team}"}), "ExpressionError", "spec.nodes[1].template.data.t"),
    ],
)
def test_a_variable_belongs_to_its_node_alone(node: JsonObject, reason: str, path: str) -> None:
    with pytest.raises(GraphError) as caught:
        compile_graph({"nodes": [teams("red"), node]})
    assert (reason, path) in [(problem.reason, problem.path) for problem in caught.value.problems]
