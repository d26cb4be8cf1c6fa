"""Ownership of objects, and when they are pruned."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.graph.identity import APPLY_ORDER
from kardinal.graph.prune import teardown_wave
from kardinal.graph.walk_types import Apply, RefusedApply
from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal.promotion.kinds import BUNDLE
from tests.graph.cluster import NAMESPACE, START, Cluster, Engine, Observed, config, data, key_of, status
from tests.graph.promotions import until_prod


def test_a_restart_writes_nothing(cluster: Cluster, promotion: Engine) -> None:
    promotion.rest()
    promotion.writes()
    fresh = Engine(cluster, *promotion.nodes)
    fresh.rest()
    assert fresh.writes() == []


def test_adding_nodes_rewrites_none(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", {"x": "1"}))
    engine.rest()
    engine.writes()
    engine.nodes += [config("b", {"x": "${a.data.x}"})]
    engine.rest()
    assert engine.writes() == ["apply b"]


def test_an_edit_of_our_field_is_corrected_and_one_of_another_left_alone(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", {"x": "1"}))
    engine.rest()
    engine.writes()
    cluster.edit(CONFIG_MAP, "a", data={"x": "changed", "theirs": "kept"})
    result = engine.walk()
    assert engine.writes() == ["apply a"]
    assert data(cluster, "a") == {"x": "1", "theirs": "kept"}
    assert not result.applies


def test_correcting_takes_the_field_back_and_applying_does_not(cluster: Cluster) -> None:
    seen = []
    engine = Engine(cluster, config("a", {"x": "1"}))
    carry_out = cluster.carry_out

    def recording(apply: Apply) -> JsonObject:
        seen.append(apply.force)
        return carry_out(apply)

    cluster.carry_out = recording  # type: ignore[method-assign]
    engine.rest()
    cluster.edit(CONFIG_MAP, "a", data={"x": "changed"})
    engine.rest()
    engine.nodes[0]["template"]["data"]["x"] = "2"
    engine.rest()
    assert seen == [False, True, False]


def test_a_field_that_the_server_drops_is_not_applied_for_ever(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", {"x": "1", "unknown": "?"}))
    carry_out = cluster.carry_out

    def dropping(apply: Apply) -> JsonObject:
        live = carry_out(apply)
        live["data"].pop("unknown", None)
        return live

    cluster.carry_out = dropping  # type: ignore[method-assign]
    engine.rest()
    assert engine.writes() == ["apply a"]
    cluster.edit(CONFIG_MAP, "a", data={"x": "changed"})
    engine.rest()
    assert engine.writes() == ["apply a"]


def test_a_deleted_object_is_made_again_at_once(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", {"x": "1"}), config("b", {"uid": "${a.metadata.uid}"}))
    engine.rest()
    first = data(cluster, "b")
    cluster.delete(key_of(CONFIG_MAP, "a"))
    engine.rest()
    assert data(cluster, "b") != first


def test_an_object_on_its_way_out_is_waited_for(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a"))
    engine.rest()
    cluster.edit(CONFIG_MAP, "a", metadata={"finalizers": ["x"]})
    cluster.delete(key_of(CONFIG_MAP, "a"))
    assert engine.rest()["a"].reason == "Terminating"
    cluster.release_finalizers(key_of(CONFIG_MAP, "a"))
    assert engine.states() == {"a": "Ready"}


def test_a_refused_object_is_its_nodes_failure_and_is_not_sent_again(cluster: Cluster) -> None:
    nodes = config("a"), config("b", {"x": "1"}), config("c", {"x": "${b.data.x}"})
    engine = Engine(cluster, *nodes)
    engine.refuse["b"] = RefusedApply("", "Error", "Invalid", "data.x: not allowed")
    assert engine.states() == {"a": "Ready", "b": "Error", "c": "Blocked"}
    assert engine.writes() == ["apply a", "refused b"]
    engine.refuse.clear()
    engine.rest()
    assert engine.writes() == []
    engine.nodes[1]["template"]["data"]["x"] = "2"
    assert engine.states() == {"a": "Ready", "b": "Ready", "c": "Ready"}


def test_a_passing_failure_is_tried_again_in_time(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a"), config("b", {"x": "${a.metadata.name}"}))
    retry_at = START + timedelta(seconds=5)
    engine.refuse["a"] = RefusedApply("", "SystemError", "ServerError", "503", retry_at=retry_at)
    assert engine.states() == {"a": "SystemError", "b": "Blocked"}
    assert engine.walk().wake == retry_at
    engine.refuse.clear()
    engine.pass_time(seconds=5)
    assert engine.states() == {"a": "Ready", "b": "Ready"}


def test_an_object_of_another_graph_is_not_taken(cluster: Cluster) -> None:
    Engine(cluster, config("a", name="shared"), name="one").rest()
    other = Engine(cluster, config("a", name="shared"), config("b"), name="two")
    assert other.states() == {"a": "Conflict", "b": "Ready"}
    assert other.tear_down() == [["b"]]


def test_an_object_that_was_there_before_is_never_taken(cluster: Cluster) -> None:
    cluster.create(CONFIG_MAP, "a", data={"theirs": "kept"})
    engine = Engine(cluster, config("a", {"x": "1"}), config("b", {"x": "${a.metadata.name}"}))
    assert engine.states() == {"a": "Conflict", "b": "Blocked"}
    assert engine.writes() == []
    assert engine.tear_down() == []
    cluster.delete(key_of(CONFIG_MAP, "a"))
    assert engine.states() == {"a": "Ready", "b": "Ready"}


def test_marks_without_the_owner_reference_make_no_object_ours(cluster: Cluster) -> None:
    Engine(cluster, config("a", {"x": "1"})).rest()
    marked = cluster.objects[key_of(CONFIG_MAP, "a")]["metadata"]
    forged = {"labels": marked["labels"], "annotations": marked["annotations"]}
    cluster.create(CONFIG_MAP, "forged", data={})
    cluster.edit(CONFIG_MAP, "forged", metadata=forged)
    engine = Engine(cluster, config("a", {"x": "1"}))
    assert engine.tear_down() == [["a"]]
    assert cluster.names(CONFIG_MAP) == {"forged"}


def test_an_object_that_something_else_controls_is_not_ours(cluster: Cluster) -> None:
    Engine(cluster, config("a", {"x": "1"})).rest()
    controller = {"apiVersion": "v1", "kind": "ConfigMap", "name": "z", "uid": "z", "controller": True}
    mine = {"apiVersion": "experimental.kro.run/v1alpha1", "kind": "Graph", "name": "g", "uid": "uid-of-g"}
    cluster.edit(CONFIG_MAP, "a", metadata={"ownerReferences": [controller, mine]})
    assert Engine(cluster, config("a", {"x": "1"})).states() == {"a": "Conflict"}


@pytest.mark.parametrize("layer", ["999999", "9" * 5000, "-1", "\u0663", "1e3"])
def test_a_forged_layer_does_not_keep_other_objects(cluster: Cluster, layer: str) -> None:
    engine = Engine(cluster, config("a"), config("b", {"x": "${a.metadata.name}"}))
    engine.rest()
    annotations = cluster.objects[key_of(CONFIG_MAP, "a")]["metadata"]["annotations"] | {APPLY_ORDER: layer}
    cluster.edit(CONFIG_MAP, "a", metadata={"annotations": annotations, "finalizers": ["x"]})
    cluster.delete(key_of(CONFIG_MAP, "a"))
    waves = []
    observed = Observed(cluster, engine.identity)
    engine.pass_time(minutes=11)
    while wave := teardown_wave(engine.identity, observed, now=engine.now):
        waves.append([prune.key.name for prune in wave])
        for prune in wave:
            cluster.delete(prune.key)
    assert waves == [["b"]]


def test_a_node_makes_nothing_in_another_namespace(cluster: Cluster) -> None:
    node = config("a")
    node["template"]["metadata"]["namespace"] = "away"
    engine = Engine(cluster, node)
    assert engine.rest()["a"].state == "Error"
    assert engine.writes() == []


def test_a_removed_node_is_deleted_after_what_followed_it(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a"), config("b", {"x": "${a.metadata.name}"}), config("c"))
    engine.rest()
    engine.writes()
    engine.nodes = [config("c")]
    engine.rest()
    assert engine.writes() == ["delete b", "delete a"]


def test_a_wave_waits_until_the_one_before_is_gone(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a"), config("b", {"x": "${a.metadata.name}"}))
    engine.rest()
    cluster.edit(CONFIG_MAP, "b", metadata={"finalizers": ["x"]})
    engine.writes()
    engine.nodes = []
    engine.rest()
    assert engine.writes() == ["delete b"]
    cluster.release_finalizers(key_of(CONFIG_MAP, "b"))
    engine.rest()
    assert engine.writes() == ["delete a"]


def test_renaming_a_node_keeps_its_object(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", {"x": "1"}, name="thing"))
    engine.rest()
    uid = cluster.objects[key_of(CONFIG_MAP, "thing")]["metadata"]["uid"]
    engine.writes()
    engine.nodes = [config("z", {"x": "1"}, name="thing")]
    engine.rest()
    assert engine.writes() == ["apply thing"]
    metadata = cluster.objects[key_of(CONFIG_MAP, "thing")]["metadata"]
    assert metadata["uid"] == uid
    assert f"z.g.{NAMESPACE}.internal.kro.run/type" in metadata["labels"]
    assert f"a.g.{NAMESPACE}.internal.kro.run/type" not in metadata["labels"]


def test_renaming_a_node_behind_a_closed_gate_keeps_its_object_too(cluster: Cluster) -> None:
    a = config("a", propagateWhen=["${a.status.open == true}"])
    engine = Engine(cluster, a, config("b", {"x": "${a.status.x}"}, name="thing"))
    engine.rest()
    status(cluster, "a", open=True, x="1")
    engine.rest()
    status(cluster, "a", open=False)
    engine.nodes[1] = config("z", {"x": "${a.status.x}"}, name="thing")
    assert engine.states() == {"a": "Ready", "z": "Ready"}
    assert "thing" in cluster.names(CONFIG_MAP)


def test_an_object_that_gets_another_name_by_data_replaces_the_old_one(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", {"n": "one"}), config("b", name="${a.data.n}"))
    engine.rest()
    engine.nodes[0]["template"]["data"]["n"] = "two"
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"a", "two"}


def test_an_object_with_a_new_name_is_made_before_the_old_one_goes(cluster: Cluster) -> None:
    a = config("a", propagateWhen=["${a.status.open == true}"])
    engine = Engine(cluster, a, config("b", {"x": "${a.status.x}"}, name="old"))
    engine.rest()
    status(cluster, "a", open=True, x="1")
    engine.rest()
    status(cluster, "a", open=False)
    engine.nodes[1] = config("b", {"x": "${a.status.x}"}, name="new")
    assert engine.states()["b"] == "Pending"
    assert cluster.names(CONFIG_MAP) == {"a", "old"}
    engine.writes()
    status(cluster, "a", open=True)
    engine.rest()
    assert engine.writes() == ["apply new", "delete old"]


@pytest.mark.parametrize("broken", ["${a.status.gone}", "${a.metadata.name + 1}"])
def test_nothing_is_deleted_while_its_node_is_in_doubt(cluster: Cluster, broken: str) -> None:
    engine = Engine(cluster, config("a"), config("b", {"x": "${a.metadata.name}"}), config("c", name="${b.data.x}-c"))
    engine.rest()
    engine.nodes[1]["template"]["data"]["x"] = broken
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"a", "b", "a-c"}


def test_everything_goes_in_reverse_order_without_evaluating_anything(cluster: Cluster, promotion: Engine) -> None:
    until_prod(cluster, promotion)
    assert promotion.tear_down() == [["b1-prod"], ["b1-hours", "b1-soak"], ["b1-staging"], ["b1-dev"]]
    assert cluster.names(BUNDLE) == {"b1"}
