"""Nodes that only read."""

from __future__ import annotations

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from tests.graph.cluster import Cluster, Engine, config, data, key_of

REF: JsonObject = {"id": "r", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "target"}}}


def test_a_reference_waits_for_its_target_and_deletes_nothing_when_it_goes(cluster: Cluster) -> None:
    engine = Engine(cluster, REF, config("b", {"x": "${r.data.x}"}))
    outcome = engine.rest()["r"]
    assert (outcome.state, outcome.reason) == ("Pending", "TargetMissing")
    cluster.create(CONFIG_MAP, "target", data={"x": "1"})
    assert engine.states() == {"r": "Ready", "b": "Ready"}
    cluster.delete(key_of(CONFIG_MAP, "target"))
    assert engine.states() == {"r": "Pending", "b": "Pending"}
    assert cluster.names(CONFIG_MAP) == {"b"}


def test_a_bare_identity_of_an_existing_object_is_a_reference(cluster: Cluster) -> None:
    cluster.create(BUNDLE, "b1")
    body = {"apiVersion": BUNDLE.api_version, "kind": "Bundle", "metadata": {"name": "b1"}}
    engine = Engine(cluster, {"id": "bundle", "template": body})
    outcome = engine.rest()["bundle"]
    assert (outcome.kind, outcome.state, outcome.reason) == ("ref", "Ready", "AmbiguousTemplate")
    assert engine.writes() == []
    assert engine.tear_down() == []
    cluster.delete(key_of(BUNDLE, "b1"))
    assert engine.states() == {"bundle": "Pending"}
    assert engine.writes() == []


def test_a_bare_identity_of_an_owner_is_a_reference_even_when_it_is_gone(cluster: Cluster) -> None:
    body = {"apiVersion": BUNDLE.api_version, "kind": "Bundle", "metadata": {"name": "b1"}}
    owners = frozenset([(BUNDLE.api_version, "Bundle", "b1")])
    assert Engine(cluster, {"id": "bundle", "template": body}, owners=owners).states() == {"bundle": "Pending"}
    assert cluster.names(BUNDLE) == set()


def test_a_bare_identity_of_an_absent_object_makes_it(cluster: Cluster) -> None:
    node = {"id": "a", "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}}
    engine = Engine(cluster, node)
    assert engine.states() == {"a": "Ready"}
    assert engine.tear_down() == [["a"]]


def test_a_watch_is_an_ordered_list_of_what_its_selector_matches(cluster: Cluster) -> None:
    watch = {
        "id": "w",
        "watch": {"apiVersion": "v1", "kind": "ConfigMap", "selector": {"matchLabels": {"app": "x"}}},
    }
    b = config("b", {"names": "${w.map(i, i.metadata.name)}"})
    engine = Engine(cluster, watch, b)
    cluster.create(CONFIG_MAP, "two", labels={"app": "x"})
    cluster.create(CONFIG_MAP, "one", labels={"app": "x"})
    cluster.create(CONFIG_MAP, "other", labels={"app": "y"})
    cluster.create(CONFIG_MAP, "far", namespace="away", labels={"app": "x"})
    engine.rest()
    assert data(cluster, "b") == {"names": ["far", "one", "two"]}
    cluster.delete(key_of(CONFIG_MAP, "one"))
    engine.rest()
    assert data(cluster, "b") == {"names": ["far", "two"]}


def test_a_watch_with_a_condition_is_not_ready_without_a_match(cluster: Cluster) -> None:
    watch = {
        "id": "w",
        "readyWhen": ["${w.all(i, i.data.ok == 'yes')}"],
        "watch": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]},
        },
    }
    engine = Engine(cluster, watch)
    outcome = engine.rest()["w"]
    assert (outcome.state, outcome.reason) == ("NotReady", "NoMatches")
    cluster.create(CONFIG_MAP, "one", labels={"app": "x"}, data={"ok": "yes"})
    assert engine.states() == {"w": "Ready"}


def test_the_freeze_node_stands_beside_everything(cluster: Cluster, promotion: Engine) -> None:
    before = promotion.states()
    cluster.create(POLICY_GATE, "p-freeze", labels={"kardinal.io/type": "freeze"})
    assert promotion.states() == before


@pytest.mark.parametrize("namespace", ["${c.data.empty}", "${c.data.list}", "${c.data.number}"])
def test_watch_of_a_namespace_that_is_no_text_is_an_error(cluster: Cluster, namespace: str) -> None:
    cluster.create(CONFIG_MAP, "c", data={"empty": "", "list": ["a"], "number": 5})
    read = {"id": "c", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}}
    metadata = {"namespace": namespace, "selector": {}}
    watch = {"id": "w", "watch": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}}
    outcome = Engine(cluster, read, watch).rest()["w"]
    assert (outcome.state, outcome.message) == ("Error", "metadata.namespace must be a text")


def test_a_kind_that_is_not_installed_waits_and_is_named(cluster: Cluster) -> None:
    node = {"id": "d", "ref": {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "d"}}}
    outcome = Engine(cluster, node).rest()["d"]
    assert (outcome.state, outcome.reason) == ("Pending", "KindNotInstalled")
    assert "apps/v1 StatefulSet is not installed" in str(outcome.message)
