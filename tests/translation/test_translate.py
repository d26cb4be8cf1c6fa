"""The Graph of a Bundle, node by node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.graph import FINALIZER, compile_graph
from kardinal.graph.evaluator import Evaluator, Overruns
from kardinal.promotion.api import PolicyGate, PromotionStep
from kardinal.promotion.translation.topology import read_topology
from tests.support.objects import environment
from tests.translation.values import (
    MORNING,
    bundle,
    edges,
    identifiers,
    node,
    org_gate,
    pipeline,
    step,
    team_gate,
    translated,
)


def test_the_graph_is_named_like_its_bundle_and_belongs_to_it() -> None:
    graph = translated()
    assert (graph["apiVersion"], graph["kind"]) == ("experimental.kro.run/v1alpha1", "Graph")
    assert graph["metadata"] == {
        "name": "app-1",
        "namespace": "default",
        "labels": {"kardinal.io/pipeline": "my-app", "kardinal.io/bundle": "app-1"},
        "finalizers": [FINALIZER],
        "ownerReferences": [
            {
                "apiVersion": "kardinal.io/v1alpha1",
                "kind": "Bundle",
                "name": "app-1",
                "uid": "uid-of-app-1",
                "controller": True,
            }
        ],
    }


def test_the_engine_accepts_whatever_names_and_texts_its_users_chose() -> None:
    way = pipeline("in", environment("2-eu", dependsOn=["in"]), environment("true", path="a/${b}"), "bundle")
    found = [org_gate("namespace", "'${' == '$${'", applies_to=None, message="$$${x} }"), team_gate("namespace")]
    graph = compile_graph(translated(way, found=found)["spec"])
    assert len(graph.nodes) == 2 + 4 + 4


def test_escaped_text_leaves_the_engine_unchanged() -> None:
    expression = "'${' == '$${x}' || '$$${y}' == '}'"
    graph = compile_graph(translated(found=[org_gate("odd", expression, applies_to="dev")])["spec"])
    gate = next(node for node in graph.nodes if node.id == "odd0dev")
    rendered = gate.body.render(Evaluator(now=MORNING, overruns=Overruns()))
    assert isinstance(rendered, dict)
    assert rendered["spec"]["expression"] == expression


def test_the_same_arguments_give_the_same_graph() -> None:
    found = [org_gate("soak"), team_gate("soak"), team_gate("hours", applies_to=None)]
    assert translated(found=found) == translated(found=list(reversed(found)))


def test_nodes_stand_in_topological_order_with_the_gates_before_their_step() -> None:
    assert identifiers(translated(found=[org_gate("no-weekend")])) == [
        "bundle",
        "freeze",
        "dev",
        "staging",
        "noWeekend0prod",
        "prod",
    ]


def test_the_bundle_is_only_read() -> None:
    assert node(translated(), "bundle") == {
        "id": "bundle",
        "ref": {
            "apiVersion": "kardinal.io/v1alpha1",
            "kind": "Bundle",
            "metadata": {"name": "app-1", "namespace": "default"},
        },
    }


def test_freezes_are_watched_without_conditions() -> None:
    assert node(translated(), "freeze") == {
        "id": "freeze",
        "watch": {
            "apiVersion": "kardinal.io/v1alpha1",
            "kind": "PolicyGate",
            "metadata": {
                "namespace": "default",
                "selector": {"kardinal.io/type": "freeze", "kardinal.io/pipeline": "my-app"},
            },
        },
    }


def test_a_step_holds_back_what_follows_until_it_is_verified_and_while_it_is_unhealthy() -> None:
    found = node(translated(), "staging")
    verified = '${staging.status.state == "Verified"}'
    assert found["readyWhen"] == [verified]
    assert found["propagateWhen"] == [verified, "${!has(staging.status.healthy) || staging.status.healthy}"]


def test_a_step_is_a_self_contained_copy_with_its_defaults_resolved() -> None:
    way = pipeline({"name": "dev"}, git={"url": "file:///repo"})
    template = step(translated(way), "dev")
    assert template["metadata"] == {
        "name": "app-1-dev",
        "namespace": "default",
        "labels": {
            "kardinal.io/pipeline": "my-app",
            "kardinal.io/bundle": "app-1",
            "kardinal.io/environment": "dev",
        },
    }
    assert template["spec"] == {
        "pipeline": "my-app",
        "environment": "dev",
        "bundleRef": "${bundle.metadata.name}",
        "path": "environments/dev",
        "git": {
            "url": "file:///repo",
            "branch": "main",
            "layout": "directory",
            "provider": "git",
            "statusOnOthers": False,
        },
        "update": {"strategy": "kustomize", "verifyEffect": "fail", "images": []},
        "approval": "auto",
        "pr": False,
        "steps": [
            {"uses": "git-clone"},
            {"uses": "kustomize-set-image"},
            {"uses": "git-commit"},
            {"uses": "git-push"},
            {"uses": "health-check"},
        ],
        "health": {"timeout": "10m", "failureGrace": "30s", "degradedAfter": "1m"},
        "delivery": {"delegate": "none"},
        "requiredGates": [],
    }


def test_pipeline_values_are_copied_over_defaults() -> None:
    prod = environment(
        "prod",
        path="clusters/eu/prod",
        approval="pr-review",
        shard="eu-cluster",
        health={"resource": {"name": "web", "namespace": "apps"}, "timeout": "90s"},
    )
    url = "https://git.example.com/acme/gitops"
    git = {"url": url, "branch": "release", "provider": "gitea", "secretRef": {"name": "token"}}
    template = step(translated(pipeline(prod, git=git)), "prod")
    spec = template["spec"]
    assert template["metadata"]["labels"]["kardinal.io/shard"] == "eu-cluster"
    assert (spec["path"], spec["approval"], spec["shard"]) == ("clusters/eu/prod", "pr-review", "eu-cluster")
    assert spec["git"] == {"layout": "directory", "statusOnOthers": False, **git}
    assert spec["health"]["resource"] == {
        "name": "web",
        "namespace": "apps",
        "condition": "Available",
    }
    assert spec["health"]["timeout"] == "1m30s"
    assert [entry["uses"] for entry in spec["steps"]] == [
        "git-clone",
        "kustomize-set-image",
        "git-commit",
        "git-push",
        "open-pr",
        "wait-for-merge",
        "health-check",
    ]


@pytest.mark.parametrize(
    ("health", "expected"),
    [
        ({"argocd": {"name": "a"}}, {"type": "argocd", "argocd": {"name": "a", "namespace": "argocd"}}),
        (
            {"flux": {"name": "a"}},
            {"type": "flux", "flux": {"kind": "Kustomization", "name": "a", "namespace": "flux-system"}},
        ),
        ({"flagger": {"name": "a"}}, {"type": "flagger", "flagger": {"name": "a", "namespace": "dev"}}),
        (
            {"argoRollouts": {"name": "a", "namespace": "b"}},
            {"type": "argoRollouts", "argoRollouts": {"name": "a", "namespace": "b"}},
        ),
    ],
)
def test_the_object_that_speaks_for_an_environment_says_its_type(
    health: dict[str, Any], expected: dict[str, Any]
) -> None:
    found = step(translated(pipeline(environment("dev", health=health))), "dev")["spec"]["health"]
    assert found == {**expected, "timeout": "10m", "failureGrace": "30s", "degradedAfter": "1m"}


OWN = {"name": "my-app", "namespace": "dev"}
WORKLOADS = {"namespace": "dev", "condition": "Available"}


@pytest.mark.parametrize(
    ("delegate", "health", "expected"),
    [
        ("none", {}, {}),
        ("none", {"cluster": "eu"}, {"cluster": "eu", "type": "resource", "resource": WORKLOADS}),
        ("argoRollouts", {}, {"argoRollouts": OWN}),
        ("argoRollouts", {"argoRollouts": {"name": "web"}}, {"argoRollouts": {**OWN, "name": "web"}}),
        ("flagger", {"cluster": "eu"}, {"cluster": "eu", "type": "flagger", "flagger": OWN}),
        (
            "flagger",
            {"argocd": {"name": "a"}},
            {"type": "argocd", "argocd": {"name": "a", "namespace": "argocd"}, "flagger": OWN},
        ),
    ],
)
def test_a_proof_that_is_not_named_is_left_to_the_agent_and_a_delegate_is_named_by_default(
    delegate: str, health: dict[str, Any], expected: dict[str, Any]
) -> None:
    made = environment("dev", health=health, delivery={"delegate": delegate})
    found = step(translated(pipeline(made)), "dev")["spec"]["health"]
    assert found == {**expected, "timeout": "10m", "failureGrace": "30s", "degradedAfter": "1m"}


def test_explicit_steps_are_copied_in_order_with_their_config() -> None:
    steps = [
        {"uses": "git-clone"},
        {"uses": "kustomize-set-image", "config": {"path": "web"}},
        {"uses": "git-commit"},
        {"uses": "git-push"},
        {"uses": "health-check"},
    ]
    assert step(translated(pipeline(environment("dev", steps=steps))), "dev")["spec"]["steps"] == steps


def test_a_gate_instance_carries_its_upstream_its_origin_and_its_freshness() -> None:
    graph = translated(found=[org_gate("soak", "bundle.upstreamSoakMinutes >= 30", recheckInterval="1m", message="m")])
    gate = node(graph, "soak0prod")
    assert gate["readyWhen"] == ["${soak0prod.status.ready == true}"]
    assert gate["propagateWhen"] == [
        "${soak0prod.status.ready == true}",
        '${timestamp(soak0prod.status.lastEvaluatedAt) > now() - duration("2m")}',
        "${!has(soak0prod.status.nextTransitionAt) || timestamp(soak0prod.status.nextTransitionAt) > now()}",
    ]
    assert gate["template"]["metadata"] == {
        "name": "app-1-prod-soak",
        "namespace": "default",
        "labels": {
            "kardinal.io/pipeline": "my-app",
            "kardinal.io/bundle": "app-1",
            "kardinal.io/environment": "prod",
            "kardinal.io/gate": "soak",
            "kardinal.io/scope": "org",
        },
    }
    assert gate["template"]["spec"] == {
        "expression": "bundle.upstreamSoakMinutes >= 30",
        "message": "m",
        "recheckInterval": "1m",
        "origin": {
            "namespace": "platform-policies",
            "name": "soak",
            "scope": "org",
            "pipeline": "my-app",
            "bundle": "app-1",
            "environment": "prod",
            "approval": "auto",
        },
        "upstreamEnvironment": "${staging.spec.environment}",
    }
    assert step(graph, "prod")["spec"]["requiredGates"] == ["${soak0prod.metadata.name}"]
    assert step(graph, "staging")["spec"]["requiredGates"] == []


def test_a_gate_after_several_environments_names_them_all() -> None:
    way = pipeline("eu", environment("us", dependsOn=[]), environment("prod", dependsOn=["us", "eu"]))
    gate = node(translated(way, found=[org_gate("soak")]), "soak0prod")
    assert gate["template"]["spec"]["upstreamEnvironment"] == "${us.spec.environment},${eu.spec.environment}"


def test_a_gate_on_a_first_environment_has_no_upstream() -> None:
    gate = node(translated(found=[org_gate("soak", applies_to="dev")]), "soak0dev")
    assert "upstreamEnvironment" not in gate["template"]["spec"]


def test_an_interval_below_a_second_does_not_shrink_the_window_below_two() -> None:
    gate = node(translated(found=[org_gate("busy", recheckInterval="10ms")]), "busy0prod")
    assert 'duration("2s")' in gate["propagateWhen"][1]


def test_user_text_is_never_an_expression_of_the_graph() -> None:
    graph = translated(
        pipeline(environment("dev", path="overlays/${dev}")),
        found=[org_gate("odd", "'${x}' == '$${y}'", applies_to=None, message="costs ${bundle.metadata.name}")],
    )
    gate = node(graph, "odd0dev")["template"]["spec"]
    assert gate["expression"] == "'$${x}' == '$$${y}'"
    assert gate["message"] == "costs $${bundle.metadata.name}"
    assert step(graph, "dev")["spec"]["path"] == "overlays/$${dev}"


def test_long_names_are_cut_in_names_and_labels_alike() -> None:
    long = "a" * 70
    graph = translated(what=bundle(long), found=[org_gate("g" * 60)])
    assert graph["metadata"]["name"] == long
    for found in graph["spec"]["nodes"][2:]:
        metadata = found["template"]["metadata"]
        assert len(metadata["name"]) <= 63
        assert all(len(value) <= 63 for value in metadata["labels"].values())


name = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?", fullmatch=True)


@given(
    environments=st.lists(name, min_size=1, max_size=5, unique=True),
    org=st.lists(name, max_size=3, unique=True),
    team=st.lists(name, max_size=3, unique=True),
)
def test_generated_ids_and_names_are_unique_and_valid_whatever_the_names(
    environments: list[str], org: list[str], team: list[str]
) -> None:
    found = [org_gate(gate, applies_to=None) for gate in org] + [team_gate(gate, applies_to=None) for gate in team]
    graph = translated(pipeline(*environments), bundle("b"), found)
    ids = [identifier.lower() for identifier in identifiers(graph)]
    assert len(ids) == len(set(ids)) == 2 + len(environments) * (1 + len(found))
    assert all(identifier.isalnum() and not identifier[0].isdigit() and len(identifier) <= 63 for identifier in ids)
    objects = [
        (template["kind"], template["metadata"]["name"])
        for entry in graph["spec"]["nodes"]
        if (template := entry.get("template"))
    ]
    assert len(objects) == len(set(objects))
    assert all(len(entry[1]) <= 63 for entry in objects)
    assert set(read_topology(graph).environments) == set(environments)


def test_the_templates_are_what_the_models_read_once_expressions_are_resolved() -> None:
    graph = translated(found=[org_gate("soak")])
    gate = node(graph, "soak0prod")["template"]
    assert PolicyGate.model_validate(gate).spec.origin is not None
    template = step(graph, "prod")
    template["spec"] |= {"bundleRef": "app-1", "requiredGates": ["app-1-prod-soak"]}
    assert PromotionStep.model_validate(template).spec.required_gates == ("app-1-prod-soak",)


@pytest.mark.parametrize("wanted", ["dev", "staging", "prod"])
def test_topology_reads_back_what_was_translated(wanted: str) -> None:
    graph = translated(what=bundle(intent={"target": wanted}), found=[org_gate("g", applies_to=None)])
    topology = read_topology(graph)
    assert set(topology.environments) == set(edges(graph))
    assert topology.before(wanted) == set(edges(graph)) - {wanted}
    gates = {(gate.namespace, gate.name, gate.environment) for gate in topology.gates}
    assert gates == {("platform-policies", "g", environment) for environment in edges(graph)}
