"""Which gates hold for which Pipeline and environment, and what they say in vain."""

from __future__ import annotations

import pytest

from kardinal.promotion.api import PolicyGate
from kardinal.promotion.policy.matching import named_environments
from kardinal.promotion.policy.template_warnings import gate_warnings
from tests.support.objects import environment
from tests.translation.values import gates, identifiers, node, org_gate, pipeline, step, team_gate, translated


def names(found: list[PolicyGate]) -> list[tuple[str, str]]:
    return [(gate.scope, gate.name) for gate in gates(found)]


def test_the_namespace_decides_the_scope_and_org_gates_come_first() -> None:
    assert names([team_gate("a"), org_gate("z")]) == [("org", "z"), ("team", "a")]


def test_a_label_does_not_make_a_team_gate_one_of_the_organisation() -> None:
    assert names([team_gate("a", labels={"kardinal.io/scope": "org"})]) == [("team", "a")]


def test_gates_of_other_namespaces_do_not_count() -> None:
    assert names([team_gate("a", namespace="elsewhere")]) == []


def test_instances_and_freezes_are_no_templates() -> None:
    instance = team_gate("app-0-prod-a", labels={"kardinal.io/bundle": "app-0"})
    freeze = team_gate("my-app-freeze", "false", labels={"kardinal.io/type": "freeze"})
    assert names([instance, freeze]) == []


def test_a_team_gate_may_be_limited_to_one_pipeline_and_an_org_gate_may_not() -> None:
    other = {"kardinal.io/pipeline": "other"}
    mine = {"kardinal.io/pipeline": "my-app"}
    assert names([team_gate("a", labels=other), team_gate("b", labels=mine), org_gate("c", labels=other)]) == [
        ("org", "c"),
        ("team", "b"),
    ]


def test_a_gate_applies_where_its_label_and_its_spec_say_together() -> None:
    gate = org_gate("g", applies_to="dev", appliesTo=["prod"])
    assert identifiers(translated(found=[gate])) == ["bundle", "freeze", "g0dev", "dev", "staging", "g0prod", "prod"]


def test_a_gate_that_says_nothing_applies_everywhere() -> None:
    assert len(identifiers(translated(found=[org_gate("g", applies_to=None)]))) == 2 + 2 * 3


def test_a_gate_for_an_environment_that_is_not_on_the_way_holds_nothing() -> None:
    assert identifiers(translated(found=[org_gate("g", applies_to="qa")])) == [
        "bundle",
        "freeze",
        "dev",
        "staging",
        "prod",
    ]


def test_a_team_gate_cannot_take_the_place_of_an_org_gate_of_the_same_name() -> None:
    graph = translated(found=[team_gate("soak", "true"), org_gate("soak", "false")])
    instances = [
        found["template"] for found in graph["spec"]["nodes"] if found.get("template", {}).get("kind") == "PolicyGate"
    ]
    assert {template["spec"]["expression"] for template in instances} == {"true", "false"}
    assert len({template["metadata"]["name"] for template in instances}) == 2
    assert len(step(graph, "prod")["spec"]["requiredGates"]) == 2


def test_names_that_read_alike_but_mean_different_gates_are_kept_apart() -> None:
    way = pipeline("x", environment("x-y", dependsOn=[]))
    graph = translated(way, found=[team_gate("y-z", applies_to="x"), team_gate("z", applies_to="x-y")])
    assert node(graph, "yZ0x")["template"]["metadata"]["name"] != node(graph, "z0xY")["template"]["metadata"]["name"]


@pytest.mark.parametrize(
    ("gate", "says"),
    [
        (org_gate("g"), ""),
        (org_gate("g", applies_to=None), ""),
        (org_gate("g", applies_to="prd"), "no Pipeline has an environment prd"),
        (org_gate("g", applies_to="prod", appliesTo=["qa", "uat"]), "no Pipeline has an environment qa or uat"),
        (team_gate("g", labels={"kardinal.io/scope": "org"}), "default is not a policy namespace"),
        (org_gate("g", labels={"kardinal.io/pipeline": "my-app"}), "this org gate holds for every Pipeline"),
        (team_gate("g", labels={"kardinal.io/type": "skip-permission"}), "this one permits nothing"),
        (org_gate("g", labels={"kardinal.io/type": "skip-permission"}), ""),
        (org_gate("g", labels={"kardinal.io/type": "gatte"}), "'gatte' is unknown: the gate counts as gate"),
    ],
)
def test_ineffective_gate_field_is_a_warning(gate: PolicyGate, says: str) -> None:
    unknown = named_environments(gate) - {"dev", "prod"}
    warnings = gate_warnings(gate, unknown=unknown, policy_namespaces=["platform-policies"])
    assert len(warnings) == bool(says)
    assert says in "".join(warnings)
