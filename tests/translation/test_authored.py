"""A Graph that a person writes for a Bundle is admitted if translation makes each of its nodes, and else refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.translation.authored import AccountAnswers, AdmittedGraph, GraphRefusal, admit, exported
from kardinal.promotion.translation.recorded import spec_hash
from kardinal.promotion.translation.repository import Features
from tests.support.registry import REGISTRY
from tests.translation.values import (
    MORNING,
    NAMESPACE,
    POLICIES,
    bundle,
    gates,
    node,
    org_gate,
    pipeline,
    team_gate,
    translated,
)

MANUAL = bundle(intent={"graph": "manual"})
GATES = (org_gate("weekend", "!schedule.isWeekend"), team_gate("soak", "bundle.upstreamSoakMinutes >= 30"))
MAY = AccountAnswers("promoter", lent=True, promotes=True)
PERMISSION = {"kardinal.io/type": "skip-permission"}

Change = Callable[[JsonObject], Any]


def written(
    way: Pipeline | None = None,
    what: Bundle = MANUAL,
    found: Sequence[PolicyGate] = GATES,
) -> JsonObject:
    """Return the Graph that `kardinal init --mode graph` prints, as the API server has stored it."""
    graph = deepcopy(exported(translated(way, what, found), account="promoter"))
    graph["metadata"]["uid"] = "uid-of-the-graph"
    return graph


def answer(
    graph: JsonObject,
    *,
    way: Pipeline | None = None,
    what: Bundle = MANUAL,
    found: Sequence[PolicyGate] = GATES,
    account: AccountAnswers = MAY,
) -> AdmittedGraph | GraphRefusal:
    return admit(
        graph,
        what,
        way or pipeline(),
        gates(found),
        account,
        features=Features(registry=REGISTRY, allow_local_repositories=True),
        now=MORNING,
    )


def reasons(graph: JsonObject, **fields: Any) -> list[str]:
    found = answer(graph, **fields)
    assert isinstance(found, GraphRefusal)
    return list(found.reasons)


def nodes(graph: JsonObject) -> list[JsonObject]:
    found: list[JsonObject] = graph["spec"]["nodes"]
    return found


def remove(*identifiers: str) -> Change:
    def change(graph: JsonObject) -> None:
        graph["spec"]["nodes"] = [each for each in nodes(graph) if each["id"] not in identifiers]

    return change


def spec(identifier: str, **fields: Any) -> Change:
    """Return a change of the spec of the object of a node."""
    return lambda graph: node(graph, identifier)["template"]["spec"].update(fields)


def of_node(identifier: str, **fields: Any) -> Change:
    return lambda graph: node(graph, identifier).update(fields)


def label(identifier: str, key: str, value: str) -> Change:
    return lambda graph: node(graph, identifier)["template"]["metadata"]["labels"].update({key: value})


def add(body: JsonObject) -> Change:
    return lambda graph: nodes(graph).append(body)


def without_gate(graph: JsonObject, gate: str, environment: str) -> None:
    """Take the node of a gate out, and its name from the step."""
    remove(gate)(graph)
    required = node(graph, environment)["template"]["spec"]["requiredGates"]
    required.remove(f"${{{gate}.metadata.name}}")


def test_exported_graph_is_admitted_with_its_uid_and_hash() -> None:
    graph = written()
    assert answer(graph) == AdmittedGraph("uid-of-the-graph", spec_hash(graph))


@given(st.data())
def test_every_translated_graph_is_admitted_in_any_order_of_its_nodes(data: st.DataObject) -> None:
    names = ["dev", "eu", "us", "prod"]
    environments = [
        {"name": name, "dependsOn": data.draw(st.lists(st.sampled_from(names[:index]), unique=True)) if index else []}
        for index, name in enumerate(names)
    ]
    way = pipeline(*environments)
    places = st.sampled_from([None, *names])
    names_of_gates = data.draw(st.lists(st.tuples(st.sampled_from(["a", "a-b", "c"]), places), max_size=4, unique=True))
    found = [
        data.draw(st.sampled_from([org_gate, team_gate]))(f"{name}{index}", applies_to=place)
        for index, (name, place) in enumerate(names_of_gates)
    ]
    graph = written(way, found=found)
    assert isinstance(answer(graph, way=way, found=found), AdmittedGraph)
    first = [each for each in nodes(graph) if each.get("x-kardinal", {}).get("kind") != "gate"]
    later = [each for each in nodes(graph) if each.get("x-kardinal", {}).get("kind") == "gate"]
    graph["spec"]["nodes"] = [*data.draw(st.permutations(first)), *later]
    assert isinstance(answer(graph, way=way, found=found), AdmittedGraph)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        # Another place than the Pipeline's.
        (spec("prod", path="environments/dev"), 'node prod: template.spec.path: write "environments/prod"'),
        (spec("prod", path="${bundle.metadata.name}"), 'node prod: template.spec.path: write "environments/prod"'),
        (spec("prod", path="environments/${'prod'}"), 'node prod: template.spec.path: write "environments/prod"'),
        (spec("prod", branch="main"), "node prod: template.spec.branch: leave it out"),
        (
            lambda graph: node(graph, "prod")["template"]["spec"]["git"].update(url="file:///other"),
            'node prod: template.spec.git.url: write "file:///repo"',
        ),
        (
            lambda graph: node(graph, "prod")["template"]["spec"]["git"].update(branch="hidden"),
            'node prod: template.spec.git.branch: write "main"',
        ),
        (spec("prod", update={"strategy": "helm"}), 'node prod: template.spec.update.strategy: write "kustomize"'),
        (spec("prod", shard="eu"), "node prod: template.spec.shard: leave it out"),
        (spec("prod", attempt=2), "node prod: template.spec.attempt: leave it out"),
        (spec("prod", bundleRef="other"), 'node prod: template.spec.bundleRef: write "${bundle.metadata.name}"'),
        (spec("prod", steps=[]), "node prod: template.spec.steps: write [{"),
        (
            lambda graph: node(graph, "prod")["template"]["metadata"].update(namespace="elsewhere"),
            'node prod: template.metadata.namespace: write "default"',
        ),
        (of_node("prod", template="${bundle}"), 'node prod: template: write {"apiVersion"'),
        # Labels.
        (label("prod", "kardinal.io/shard", "eu"), "template.metadata.labels.kardinal.io/shard: leave it out"),
        (label("prod", "kardinal.io/pipeline", "other"), 'labels.kardinal.io/pipeline: write "my-app"'),
        (label("soak0prod", "kardinal.io/type", "freeze"), "template.metadata.labels.kardinal.io/type: leave it out"),
        (
            lambda graph: graph["metadata"]["labels"].update({"kardinal.io/pipeline": "other"}),
            "metadata.labels[kardinal.io/pipeline]: write my-app, or leave it out",
        ),
        # What holds a step.
        (of_node("weekend0prod", propagateWhen=["${true}"]), "node weekend0prod: propagateWhen: write ["),
        (of_node("staging", propagateWhen=[]), "node staging: propagateWhen: write ["),
        (spec("prod", requiredGates=[]), "node prod: template.spec.requiredGates: write ["),
        (spec("prod", upstreamVerified="Verified"), "node prod: template.spec.upstreamVerified: write"),
        (spec("weekend0prod", expression="true"), 'template.spec.expression: write "!schedule.isWeekend"'),
        (
            lambda graph: node(graph, "weekend0prod")["template"]["spec"]["origin"].update(scope="team"),
            'template.spec.origin.scope: write "org"',
        ),
        (
            lambda graph: node(graph, "weekend0prod")["x-kardinal"]["gate"].update(name="soak"),
            f"node weekend0prod: there is no gate {POLICIES}/soak for Pipeline my-app",
        ),
        (
            lambda graph: node(graph, "weekend0prod")["template"]["metadata"].update(name="my-app-freeze"),
            'node weekend0prod: template.metadata.name: write "app-1-prod-weekend"',
        ),
        (
            lambda graph: node(graph, "prod")["x-kardinal"].update(upstreams=["dev", "qa"]),
            "node prod: x-kardinal.upstreams: the Graph has no step for qa",
        ),
        # Nodes that are neither steps nor gates, and words around those that are.
        (of_node("prod", forEach="${['a']}"), "node prod: forEach is not available in the Graph of a Bundle"),
        (of_node("prod", includeWhen=["${true}"]), "node prod: includeWhen is not available"),
        (of_node("prod", dependsOn=["dev"]), "node prod: dependsOn is not available"),
        (of_node("prod", lifecycle={"apply": "Force"}), "node prod: lifecycle is not available"),
        (add({"id": "path", "def": "environments/prod"}), "node path: def is not available"),
        (add({"id": "other", "patch": {"kind": "PromotionStep"}}), "node other: patch is not available"),
        (add({"id": "other", "ref": {"kind": "Bundle"}}), "node other: ref is not available"),
        (add({"id": "other", "template": {"kind": "ConfigMap"}}), "node other: x-kardinal says what it is"),
        (add({"id": "other", "x-kardinal": {"kind": "step"}}), "node other: x-kardinal says what it is"),
        (add({"id": "bundle", "def": 1}), "node bundle: ref: write {"),
        (
            of_node("bundle", ref={"apiVersion": "kardinal.io/v1alpha1", "kind": "Bundle", "metadata": {"name": "b"}}),
            'node bundle: ref.metadata.name: write "app-1"',
        ),
        (lambda graph: nodes(graph).append(deepcopy(node(graph, "prod"))), "node prod: there are two steps for prod"),
        (
            lambda graph: nodes(graph).append(deepcopy(node(graph, "soak0prod"))),
            f"node soak0prod: there are two nodes for gate {NAMESPACE}/soak before prod",
        ),
        (
            lambda graph: nodes(graph).append(deepcopy(node(graph, "bundle"))),
            "(node bundle): 'bundle' is already the id",
        ),
        (add({}), "spec.nodes[7]: a node has an id"),
        (lambda graph: graph["spec"].update(nodes=[]), "spec.nodes: list the steps and gates of the Bundle"),
        (remove("dev"), "node staging: x-kardinal.upstreams: the Graph has no step for dev"),
        (remove("prod"), "node weekend0prod: the Graph has no step for prod"),
        (remove("bundle"), "(node dev): unknown identifier 'bundle'"),
        # The head of the Graph.
        (
            lambda graph: graph["spec"].update(bundleRef="app-2"),
            "a Graph and the Bundle that it promotes have one",
        ),
        (lambda graph: graph["metadata"].update(name="mine"), "a Graph and the Bundle that it promotes have one"),
        (lambda graph: graph["spec"].update(resources=[]), "spec.resources: the Graph of a Bundle has bundleRef"),
        (
            lambda graph: graph["metadata"].update(ownerReferences=[{"controller": True, "kind": "Graph"}]),
            "metadata.ownerReferences: another object controls it",
        ),
    ],
)
def test_difference_from_translation_is_refused_by_name(change: Change, reason: str) -> None:
    graph = written()
    change(graph)
    found = reasons(graph)
    assert any(reason in each for each in found), found


def test_number_is_no_other_number_and_no_truth() -> None:
    way = pipeline({"name": "dev", "update": {"strategy": "kustomize", "pinDigest": False}}, "prod")
    graph = written(way, found=())
    assert isinstance(answer(graph, way=way, found=()), AdmittedGraph)
    node(graph, "dev")["template"]["spec"]["update"]["pinDigest"] = 0
    assert reasons(graph, way=way, found=()) == ["node dev: template.spec.update.pinDigest: write false"]


def test_org_gate_that_is_left_out_is_named() -> None:
    graph = written()
    without_gate(graph, "weekend0prod", "prod")
    assert reasons(graph) == [f"node prod: org gate {POLICIES}/weekend holds prod, and has no node before it"]


def test_org_gate_that_binds_the_path_holds_whatever_its_environment_is_called() -> None:
    bound = org_gate("bound", applies_to=None, match={"paths": ["environments/prod"]})
    [reason] = reasons(written(found=()), found=[bound])
    assert reason.startswith(f"node prod: org gate {POLICIES}/bound")


def test_gate_of_the_team_may_be_left_out_and_put_before_another_environment() -> None:
    graph = written()
    without_gate(graph, "soak0prod", "prod")
    assert isinstance(answer(graph), AdmittedGraph)
    everywhere = [team_gate("soak", "bundle.upstreamSoakMinutes >= 30", applies_to=None), GATES[0]]
    elsewhere = written(found=everywhere)
    assert isinstance(answer(elsewhere), AdmittedGraph)


def test_gate_of_another_pipeline_is_not_there() -> None:
    graph = written()
    other = team_gate("soak", labels={"kardinal.io/pipeline": "other"})
    [reason] = reasons(graph, found=[GATES[0], other])
    assert f"no gate {NAMESPACE}/soak" in reason


def skipping(*, after: tuple[str, ...] = ("dev",)) -> JsonObject:
    """Return a Graph without staging."""
    graph = written(what=bundle(intent={"skip": ["staging"]}))
    del graph["metadata"]["labels"]
    assert node(graph, "prod")["x-kardinal"]["upstreams"] == list(after)
    return graph


def test_environment_may_be_left_out_where_no_org_gate_is() -> None:
    assert isinstance(answer(skipping()), AdmittedGraph)


def test_environment_with_an_org_gate_is_left_out_by_permission_only() -> None:
    guard = org_gate("guard", applies_to="staging")
    permission = org_gate("hotfix", 'bundle.labels.hotfix == "true"', applies_to="staging", labels=PERMISSION)
    found = answer(skipping(), found=[*GATES, guard, permission])
    assert isinstance(found, GraphRefusal)
    assert found.may_pass
    [reason] = found.reasons
    assert "gate guard: hotfix: " in reason
    hotfix = bundle(intent={"graph": "manual"}, labels={"hotfix": "true"})
    assert isinstance(answer(skipping(), what=hotfix, found=[*GATES, guard, permission]), AdmittedGraph)


def test_environment_that_runs_beside_another_counts_as_skipped_before_it() -> None:
    """Write every environment, but let prod wait for dev alone."""
    beside = pipeline("dev", "staging", {"name": "prod", "dependsOn": ["dev"]})
    graph = written(beside)
    assert isinstance(answer(graph), AdmittedGraph)
    [reason] = reasons(graph, found=[*GATES, org_gate("guard", applies_to="staging")])
    assert "org gate" in reason or "guard" in reason
    with_guard = written(beside, found=[*GATES, org_gate("guard", applies_to="staging")])
    [reason] = reasons(with_guard, found=[*GATES, org_gate("guard", applies_to="staging")])
    assert "denied by gate guard" in reason


def test_last_environments_may_be_left_out() -> None:
    graph = written(what=bundle(intent={"target": "staging"}))
    assert isinstance(answer(graph, found=[*GATES, org_gate("everywhere", applies_to="prod")]), AdmittedGraph)


def test_order_may_be_stricter_than_that_of_the_pipeline() -> None:
    apart = pipeline("dev", {"name": "eu", "dependsOn": ["dev"]}, {"name": "us", "dependsOn": ["dev"]})
    one_by_one = pipeline("dev", "eu", "us")
    assert isinstance(answer(written(one_by_one, found=()), way=apart, found=()), AdmittedGraph)


def test_steps_that_wait_for_each_other_are_refused_with_their_circle() -> None:
    graph = written(pipeline("dev", "prod"), found=())
    dev = node(graph, "dev")
    dev["x-kardinal"]["upstreams"] = ["prod"]
    dev["template"]["spec"]["upstreamVerified"] = "${prod.status.state}"
    [reason] = reasons(graph, way=pipeline("dev", "prod"), found=())
    assert "in a cycle: dev -> prod -> dev" in reason or "in a cycle: prod -> dev -> prod" in reason


def test_environment_whose_condition_is_false_is_not_written() -> None:
    graph = written(pipeline("dev", "prod"), found=())
    way = pipeline("dev", {"name": "prod", "when": "has(bundle.labels.prod)"})
    [reason] = reasons(graph, way=way, found=())
    assert reason.startswith("node prod: the Pipeline leaves prod out: its condition is false")


@pytest.mark.parametrize(
    ("account", "reason"),
    [
        (AccountAnswers("", lent=False, promotes=False), "that may promote the Bundle"),
        (AccountAnswers("x", lent=False, promotes=False), "the controller may not act as ServiceAccount x"),
        (AccountAnswers("x", lent=True, promotes=False), "ServiceAccount x may not promote Bundle app-1"),
    ],
)
def test_account_that_may_not_promote_is_refused_and_asked_again(account: AccountAnswers, reason: str) -> None:
    found = answer(written(), account=account)
    assert isinstance(found, GraphRefusal)
    assert found.may_pass
    assert [each for each in found.reasons if reason in each] == list(found.reasons)


def test_bundle_of_the_pipeline_takes_no_graph() -> None:
    [reason] = reasons(written(), what=bundle())
    assert reason == "Bundle app-1 gets the Graph of its Pipeline: create one with spec.intent.graph: manual"


def test_pipeline_that_cannot_promote_is_told_of() -> None:
    [reason] = reasons(written(), way=pipeline(provider="github", url="https://user:secret@github.com/a/b"))
    assert "Pipeline/my-app spec.git.url" in reason
    assert "user:secret" not in reason


def test_words_of_the_author_are_not_quoted() -> None:
    graph = written()
    node(graph, "prod")["template"]["spec"]["git"]["url"] = "https://user:hunter2@example.com/x"
    assert "hunter2" not in " ".join(reasons(graph))


def test_reasons_are_ten_at_most() -> None:
    graph = written()
    nodes(graph).extend({"id": f"n{index}", "def": index} for index in range(1_000))
    assert len(reasons(graph)) == 10
