"""Gates of nodes: what is held back, and how it is observed meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import CONFIG_MAP
from kardinal.promotion.kinds import POLICY_GATE, PROMOTION_STEP
from tests.graph.cluster import START, Cluster, Engine, config, data, key_of, status
from tests.graph.promotions import answer, until_prod, verify


def test_one_environment_after_the_other(cluster: Cluster, promotion: Engine) -> None:
    promotion.rest()
    assert cluster.names(PROMOTION_STEP) == {"b1-dev"}
    for state in ("Pending", "Promoting", "HealthChecking"):
        verify(cluster, "dev", state)
        assert promotion.states()["staging"] == "Pending"
    promotion.writes()
    verify(cluster, "dev")
    assert promotion.states()["staging"] == "NotReady"
    assert promotion.writes() == ["apply b1-staging"]
    assert cluster.names(PROMOTION_STEP) == {"b1-dev", "b1-staging"}


def test_gates_are_made_after_their_upstream_and_all_must_open(cluster: Cluster, promotion: Engine) -> None:
    promotion.rest()
    verify(cluster, "dev")
    promotion.rest()
    assert cluster.names(POLICY_GATE) == set()
    verify(cluster, "staging")
    outcome = promotion.rest()["prod"]
    assert cluster.names(POLICY_GATE) == {"b1-soak", "b1-hours"}
    assert (outcome.state, outcome.reason) == ("Pending", "Gated")
    assert outcome.waiting_for == ("hours.status.ready == true", "soak.status.ready == true")
    soak = cluster.find(POLICY_GATE, "b1-soak")
    assert soak is not None
    assert soak["spec"] == {"expression": "${x} == 1", "upstreamEnvironment": "staging"}
    answer(cluster, "soak")
    assert promotion.rest()["prod"].waiting_for == ("hours.status.ready == true",)
    answer(cluster, "hours")
    assert promotion.states()["prod"] == "NotReady"
    prod = cluster.find(PROMOTION_STEP, "b1-prod")
    assert prod is not None
    assert prod["spec"] == {
        "bundleRef": "b1",
        "environment": "prod",
        "requiredGates": ["b1-soak", "b1-hours"],
        "upstreamVerified": "Verified",
    }


def test_running_step_can_finish_behind_a_closed_gate(cluster: Cluster, promotion: Engine) -> None:
    until_prod(cluster, promotion)
    promotion.writes()
    verify(cluster, "staging", "Failed")
    assert promotion.states()["prod"] == "NotReady"
    verify(cluster, "prod")
    assert promotion.states() | {"freeze": "Ready"} == {
        "bundle": "Ready",
        "dev": "Ready",
        "staging": "NotReady",
        "soak": "Ready",
        "hours": "Ready",
        "prod": "Ready",
        "freeze": "Ready",
    }
    assert promotion.writes() == []


def test_a_frozen_object_takes_current_data_when_its_gate_opens_again(cluster: Cluster) -> None:
    a = config("a", propagateWhen=["${a.status.open == true}"])
    engine = Engine(cluster, a, config("b", {"x": "${a.status.x}"}))
    engine.rest()
    status(cluster, "a", open=True, x="1")
    engine.rest()
    status(cluster, "a", open=False, x="2")
    engine.rest()
    status(cluster, "a", x="3")
    engine.rest()
    assert data(cluster, "b") == {"x": "1"}
    status(cluster, "a", open=True)
    engine.rest()
    assert data(cluster, "b") == {"x": "3"}


def test_a_condition_about_others_holds_the_node_itself(cluster: Cluster) -> None:
    b = config("b", {"x": "1"}, propagateWhen=["${a.status.ready}"])
    engine = Engine(cluster, config("a"), b)
    outcome = engine.rest()["b"]
    assert (outcome.state, outcome.reason, outcome.waiting_for) == ("Pending", "Gated", ("a.status.ready",))
    status(cluster, "a", ready=True)
    assert engine.states()["b"] == "Ready"
    status(cluster, "a", ready=False)
    b["template"]["data"]["x"] = "2"
    engine.rest()
    assert data(cluster, "b") == {"x": "1"}
    status(cluster, "a", ready=True)
    engine.rest()
    assert data(cluster, "b") == {"x": "2"}


@pytest.mark.parametrize("condition", ["${a.status.none}", "${a.data.x + 1 == 2}", "${a.data.x}"])
def test_a_gate_that_cannot_be_evaluated_is_closed_and_no_error(cluster: Cluster, condition: str) -> None:
    a = config("a", {"x": "text"}, propagateWhen=[condition])
    assert Engine(cluster, a, config("b", {"x": "${a.data.x}"})).states() == {"a": "Ready", "b": "Pending"}


def test_a_soft_reference_sees_behind_a_closed_gate(cluster: Cluster) -> None:
    a = config("a", {"x": "1"}, propagateWhen=["${a.status.open}"])
    engine = Engine(cluster, a, config("b", {"x": "${a.?data.?x.orValue('none')}"}))
    assert engine.states()["b"] == "Ready"
    assert data(cluster, "b") == {"x": "1"}


def test_exclusion_wins_over_a_closed_gate(cluster: Cluster) -> None:
    closed = config("a", propagateWhen=["${a.status.open}"]), config("b", propagateWhen=["${b.status.open}"])
    out = config("c", includeWhen=["${false}"])
    last = config("d", {"x": "${a.metadata.name}${b.metadata.name}${c.metadata.name}"})
    assert Engine(cluster, *closed, out, last).states()["d"] == "Excluded"


def test_only_what_stands_behind_the_gate_waits(cluster: Cluster) -> None:
    b = config("b", {"x": "${a.metadata.name}"}, propagateWhen=["${b.status.open}"])
    c = config("c", {"x": "${a.metadata.name}"})
    d = config("d", {"x": "${b.data.x}${c.data.x}"})
    states = Engine(cluster, config("a"), b, c, d).states()
    assert states == {"a": "Ready", "b": "Ready", "c": "Ready", "d": "Pending"}


def test_freshness_expires_by_the_clock_and_the_walk_says_when(cluster: Cluster, promotion: Engine) -> None:
    promotion.rest()
    verify(cluster, "dev")
    promotion.rest()
    verify(cluster, "staging")
    promotion.rest()
    answer(cluster, "soak")
    result = promotion.walk()
    assert result.wake == START + timedelta(minutes=8)
    promotion.pass_time(minutes=8)
    answer(cluster, "hours", at="2026-03-03T10:07:00Z")
    assert promotion.states()["prod"] == "Pending"
    answer(cluster, "soak", at="2026-03-03T10:08:00Z")
    assert promotion.states()["prod"] == "NotReady"


def test_hour_that_a_node_waits_for_is_when_it_is_walked_again(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", includeWhen=['${now().getHours("Europe/Zurich") >= 13}']))
    assert engine.walk().wake == START + timedelta(hours=2)
    engine.pass_time(hours=2)
    assert engine.states() == {"a": "Ready"}


def test_freshness_that_expires_behind_a_finished_promotion_writes_nothing(cluster: Cluster, promotion: Engine) -> None:
    until_prod(cluster, promotion)
    verify(cluster, "prod")
    promotion.rest()
    promotion.writes()
    promotion.pass_time(hours=1)
    states = promotion.states()
    assert set(states.values()) == {"Ready"}
    assert promotion.writes() == []


def test_a_deleted_object_behind_a_closed_gate_is_not_made_again_until_it_opens(
    cluster: Cluster, promotion: Engine
) -> None:
    until_prod(cluster, promotion)
    verify(cluster, "staging", "Failed")
    cluster.delete(key_of(PROMOTION_STEP, "b1-prod"))
    assert promotion.states()["prod"] == "Pending"
    verify(cluster, "staging")
    assert promotion.states()["prod"] == "NotReady"


def test_an_excluded_node_takes_what_follows_with_it(cluster: Cluster) -> None:
    engine = Engine(cluster, config("a", includeWhen=["${1 == 2}"]), config("b", {"x": "${a.data.x}"}), config("c"))
    assert engine.states() == {"a": "Excluded", "b": "Excluded", "c": "Ready"}
    assert cluster.names(CONFIG_MAP) == {"c"}


def test_exclusion_deletes_dependents_first_and_inclusion_makes_them_again(cluster: Cluster) -> None:
    flag = config("flag", {"on": True})
    a = config("a", includeWhen=["${flag.data.on}"])
    engine = Engine(cluster, flag, a, config("b", {"x": "${a.metadata.name}"}))
    engine.rest()
    engine.writes()
    flag["template"]["data"]["on"] = False
    assert engine.states() == {"flag": "Ready", "a": "Excluded", "b": "Excluded"}
    assert engine.writes() == ["apply flag", "delete b", "delete a"]
    flag["template"]["data"]["on"] = True
    assert engine.states() == {"flag": "Ready", "a": "Ready", "b": "Ready"}


def test_inclusion_that_is_not_known_yet_deletes_nothing(cluster: Cluster) -> None:
    a = config("a", includeWhen=["${flag.status.on}"])
    engine = Engine(cluster, config("flag"), a)
    status_missing = engine.rest()["a"]
    assert (status_missing.state, status_missing.waiting_for) == ("Pending", ("flag.status.on",))
    status(cluster, "flag", on=True)
    engine.rest()
    cluster.edit(CONFIG_MAP, "flag", status={"on": None})
    assert engine.states()["a"] == "Pending"
    assert "a" in cluster.names(CONFIG_MAP)


def test_inclusion_that_is_no_truth_is_an_error(cluster: Cluster) -> None:
    assert Engine(cluster, config("a", includeWhen=["${1}"])).states() == {"a": "Error"}
