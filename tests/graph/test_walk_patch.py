"""Patches: fields that a Graph sets on objects of others, and gives up."""

from __future__ import annotations

import pytest

from kardinal.graph.walk_types import RefusedApply
from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal.promotion.kinds import POLICY_GATE
from tests.graph.cluster import Cluster, Engine, config, data, key_of


def patch(identifier: str, fields: JsonObject, *, name: str = "theirs", **modifiers: object) -> JsonObject:
    """Return a node that sets data of a ConfigMap."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": fields}
    return {"id": identifier, "patch": body, **modifiers}


def test_patch_waits_for_its_object_and_makes_none(cluster: Cluster) -> None:
    engine = Engine(cluster, patch("p", {"x": "1"}), config("b", {"y": "${p.data.theirs}"}))
    outcomes = engine.rest()
    assert (outcomes["p"].state, outcomes["p"].reason) == ("Pending", "TargetMissing")
    assert engine.writes() == []
    cluster.create(CONFIG_MAP, "theirs", data={"theirs": "kept"})
    assert engine.states() == {"p": "Ready", "b": "Ready"}
    assert data(cluster, "theirs") == {"theirs": "kept", "x": "1"}
    assert data(cluster, "b") == {"y": "kept"}
    assert engine.writes() == ["apply theirs", "apply b"]


def test_patched_object_is_released_and_never_deleted(cluster: Cluster) -> None:
    theirs = cluster.create(CONFIG_MAP, "theirs", data={"theirs": "kept"})
    engine = Engine(cluster, config("a"), patch("p", {"x": "${a.metadata.name}"}))
    engine.rest()
    assert engine.tear_down() == [["theirs"], ["a"]]
    after = cluster.find(CONFIG_MAP, "theirs")
    assert after is not None
    assert (after["metadata"]["uid"], after["data"]) == (theirs["metadata"]["uid"], {"theirs": "kept"})
    assert after["metadata"]["labels"] == after["metadata"]["annotations"] == {}


@pytest.mark.parametrize("change", ["removed", "excluded", "renamed"])
def test_fields_are_given_up_when_the_node_no_longer_wants_them(cluster: Cluster, change: str) -> None:
    for name in ("theirs", "other"):
        cluster.create(CONFIG_MAP, name, data={"theirs": "kept"})
    engine = Engine(cluster, patch("p", {"x": "1"}))
    engine.rest()
    engine.writes()
    if change == "removed":
        engine.nodes = []
    elif change == "excluded":
        engine.nodes[0]["includeWhen"] = ["${false}"]
    else:
        engine.nodes = [patch("p", {"x": "1"}, name="other")]
    engine.rest()
    assert data(cluster, "theirs") == {"theirs": "kept"}
    assert engine.writes()[-1] == "release theirs"


def test_several_graphs_patch_one_object(cluster: Cluster) -> None:
    cluster.create(CONFIG_MAP, "theirs", data={})
    one = Engine(cluster, patch("p", {"x": "1"}), name="one")
    two = Engine(cluster, patch("p", {"y": "2"}), name="two")
    assert one.states() == two.states() == one.states() == {"p": "Ready"}
    assert data(cluster, "theirs") == {"x": "1", "y": "2"}
    assert one.writes() == ["apply theirs", "apply theirs"]


def test_restart_patches_nothing_again(cluster: Cluster) -> None:
    cluster.create(CONFIG_MAP, "theirs", data={})
    engine = Engine(cluster, patch("p", {"x": "1"}))
    engine.rest()
    engine.writes()
    Engine(cluster, *engine.nodes).rest()
    assert engine.writes() == []


def test_object_that_is_made_again_is_patched_again(cluster: Cluster) -> None:
    cluster.create(CONFIG_MAP, "theirs", data={})
    engine = Engine(cluster, patch("p", {"x": "1"}))
    engine.rest()
    cluster.delete(key_of(CONFIG_MAP, "theirs"))
    assert engine.states() == {"p": "Pending"}
    cluster.create(CONFIG_MAP, "theirs", data={})
    assert engine.states() == {"p": "Ready"}
    assert data(cluster, "theirs") == {"x": "1"}


def test_patch_names_the_uid_and_takes_nothing_by_force(cluster: Cluster) -> None:
    theirs = cluster.create(CONFIG_MAP, "theirs", data={})
    engine = Engine(cluster, patch("p", {"x": "1"}))
    [apply] = engine.first().applies
    assert (apply.object["metadata"]["uid"], apply.force) == (theirs["metadata"]["uid"], False)
    engine.rest()
    cluster.edit(CONFIG_MAP, "theirs", data={"x": "by hand"})
    [apply] = engine.first().applies
    assert (apply.correction, apply.force) == (True, False)


def test_field_of_another_manager_is_a_conflict(cluster: Cluster) -> None:
    cluster.create(CONFIG_MAP, "theirs", data={"x": "theirs"})
    engine = Engine(cluster, patch("p", {"x": "1"}), config("b", {"y": "${p.metadata.name}"}))
    engine.refuse["p"] = RefusedApply("", "Conflict", "FieldConflict", 'conflict with "helm": .data.x')
    outcomes = engine.rest()
    assert (outcomes["p"].state, outcomes["p"].message) == ("Conflict", 'conflict with "helm": .data.x')
    assert outcomes["b"].state == "Blocked"
    assert data(cluster, "theirs") == {"x": "theirs"}


def test_one_object_has_one_node(cluster: Cluster) -> None:
    cluster.create(CONFIG_MAP, "theirs", data={})
    engine = Engine(cluster, config("a"), patch("p", {"x": "1"}), patch("q", {"y": "1"}), patch("r", {}, name="a"))
    outcomes = engine.rest()
    assert {node: outcome.reason for node, outcome in outcomes.items()} == {
        "a": None,
        "p": None,
        "q": "DuplicateKey",
        "r": "DuplicateKey",
    }


def test_patch_of_an_own_object_is_refused(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", {"x": "1"}))
    engine.rest()
    engine.nodes = [patch("p", {"y": "1"}, name="a")]
    assert engine.rest()["p"].reason == "OwnObject"
    assert data(cluster, "a") == {"x": "1"}


def test_patch_for_each_item(cluster: Cluster) -> None:
    for name in ("a", "b"):
        cluster.create(CONFIG_MAP, name, data={})
    engine = Engine(cluster, patch("p", {"x": "${item}"}, name="${item}", forEach="['a', 'b']"))
    assert engine.states() == {"p": "Ready"}
    assert [data(cluster, name) for name in ("a", "b")] == [{"x": "a"}, {"x": "b"}]
    engine.nodes[0]["forEach"] = "['b']"
    engine.rest()
    assert [data(cluster, name) for name in ("a", "b")] == [{}, {"x": "b"}]


def test_gate_holds_a_patch_and_its_release(cluster: Cluster) -> None:
    cluster.create(CONFIG_MAP, "theirs", data={})
    gated = config("a", propagateWhen=["${a.?status.?open.orValue(false)}"])
    engine = Engine(cluster, gated, patch("p", {"x": "${a.metadata.name}"}))
    assert engine.rest()["p"].reason == "Gated"
    cluster.edit(CONFIG_MAP, "a", status={"open": True})
    assert engine.states() == {"a": "Ready", "p": "Ready"}
    cluster.edit(CONFIG_MAP, "a", status={"open": False})
    engine.nodes[1] = patch("p", {"x": "${a.metadata.uid}"})
    assert engine.states() == {"a": "Ready", "p": "Ready"}
    assert data(cluster, "theirs") == {"x": "a"}


def test_kind_of_the_program_is_not_patched_even_by_the_graph_of_its_owner(cluster: Cluster) -> None:
    cluster.create(POLICY_GATE, "soak", status={"ready": False})
    kind = {"apiVersion": POLICY_GATE.api_version, "kind": POLICY_GATE.kind}
    opened = {**kind, "metadata": {"name": "soak"}, "status": {"ready": True}}
    engine = Engine(cluster, {"id": "p", "patch": opened})
    engine.reserved = frozenset([POLICY_GATE.group])
    engine.free = frozenset([POLICY_GATE])
    assert engine.rest()["p"].reason == "ReservedKind"
    assert engine.writes() == []
