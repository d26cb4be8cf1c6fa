"""`kardinal lint` says what the controller would refuse, with the line, and needs no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Finished
from tests.cli.in_process import InProcess

ROOT = Path(__file__).parents[2]

GOOD = """\
apiVersion: kardinal.io/v1alpha1
kind: Pipeline
metadata:
  name: my-app
spec:
  git:
    url: https://git.example.com/acme/gitops
  environments:
    - name: dev
    - name: prod
      dependsOn: [dev]
"""


def lint(tmp_path: Path, *texts: str, arguments: tuple[str, ...] = ()) -> Finished:
    paths = []
    for index, text in enumerate(texts):
        path = tmp_path / f"{index}.yaml"
        path.write_text(text)
        paths += ["-f", path.name]
    return InProcess(Path("/nonexistent"), tmp_path).run("lint", *paths, *arguments)


def test_a_pipeline_that_can_be_translated_is_fine(tmp_path: Path) -> None:
    other = GOOD.replace("name: my-app", "name: my-api")
    done = lint(tmp_path, GOOD, f"---\n{other}---\nkind: ConfigMap\n---\n- a list\n")
    assert (done.code, done.out, done.err) == (0, "2 resources are fine\n", "")


def test_two_objects_of_one_name_are_refused_because_the_last_would_replace_the_first(tmp_path: Path) -> None:
    elsewhere = GOOD.replace("  name: my-app", "  name: my-app\n  namespace: other")
    done = lint(tmp_path, GOOD, f"{elsewhere}---\n{GOOD}")
    assert done.code == 1
    assert "1.yaml:17: Pipeline/my-app metadata.name: 0.yaml:4 has one of this name already" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("dependsOn: [dev]", "dependsOn: [def]", "0.yaml:11: Pipeline/my-app spec.environments[1].dependsOn"),
        ("environments:", "enviroments:", "0.yaml:8: Pipeline/my-app spec.enviroments: unknown field; did you mean"),
        (
            "- name: prod",
            "- name: prod\n      steps: [{uses: git-clon}]",
            "0.yaml:11: Pipeline/my-app spec.environments[1].steps[0].uses: unknown step 'git-clon'",
        ),
        (
            "- name: prod",
            "- name: prod\n      steps:\n        - uses: git-clone\n        - uses: kustomize-set-image\n"
            "          config: {paht: eu}",
            "0.yaml:14: Pipeline/my-app spec.environments[1].steps[1].config.paht: kustomize-set-image has no such "
            "input; did you mean 'path'?",
        ),
        ("url: https://", "url: ftp://", "0.yaml:7: Pipeline/my-app spec.git.url"),
        (
            "  git:",
            "  git:\n    provider: githup",
            "0.yaml:7: Pipeline/my-app spec.git.provider: 'githup' is not available",
        ),
        (
            "- name: prod",
            "- name: prod\n      health:\n        kind: Deployment",
            "0.yaml:12: Pipeline/my-app spec.environments[1].health.kind: there is no such field: write "
            "health.resource.kind;",
        ),
        (
            "- name: prod",
            "- name: prod\n      health: {resource: {kind: StatefulSet, name: db, condition: Available}}",
            "0.yaml:11: Pipeline/my-app spec.environments[1].health.resource.condition: condition is of a Deployment",
        ),
        (
            "- name: prod",
            "- name: prod\n      health: {names: app}",
            "health.names: unknown field; known are type, resource, argocd, flux, argoRollouts, flagger, cluster, "
            "timeout,",
        ),
        (
            "- name: prod",
            "- name: prod\n      update: {images: [app, ghcr.io/acme/app:1.2]}",
            "0.yaml:11: Pipeline/my-app spec.environments[1].update.images[1]: ghcr.io/acme/app:1.2 has a version, "
            "which the Bundle chooses: write ghcr.io/acme/app, or the name of the image",
        ),
        ("- name: prod", "- name: prod\n      path: ../prod", "0.yaml:11: Pipeline/my-app spec.environments[1].path: "),
        ("- name: prod", "- name: Prod", "0.yaml:10: Pipeline/my-app spec.environments[1].name: String should match"),
        ("spec:", "spec: [", "0.yaml:7: not YAML"),
        ("kind: Pipeline", "kind: Pipelines", "Error: there is no resource of kardinal in these files"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_remedy(tmp_path: Path, before: str, after: str, said: str) -> None:
    assert before in GOOD
    done = lint(tmp_path, GOOD.replace(before, after, 1))
    assert done.code == 1
    assert said in done.err
    assert not done.out


def test_objects_without_a_line_between_them_are_refused_because_the_first_would_be_lost(tmp_path: Path) -> None:
    gate = "apiVersion: kardinal.io/v1alpha1\nkind: PolicyGate\nmetadata: {name: a}\nspec: {expression: 'true'}\n"
    done = lint(tmp_path, gate * 2)
    assert done.code == 1
    said = " ".join(done.err.split())
    assert ":5: not YAML" in said
    assert "apiVersion" in said
    assert "---" in said


def test_gates_and_bundles_are_checked_as_well(tmp_path: Path) -> None:
    head = "apiVersion: kardinal.io/v1alpha1\nkind: {}\nmetadata: {{name: x}}\nspec:\n"
    gate = head.format("PolicyGate") + "  expression: schedule.isWeekendd\n"
    bundle = head.format("Bundle") + "  artifacts:\n    images:\n      - reference: ghcr.io/acme/app\n"
    done = lint(tmp_path, gate, bundle)
    assert done.code == 1
    assert "0.yaml:5: PolicyGate/x spec.expression" in done.err
    assert (
        "1.yaml:7: Bundle/x spec.artifacts.images[0]: image reference 'ghcr.io/acme/app' names no version" in done.err
    )


def test_every_example_is_fine(tmp_path: Path) -> None:
    done = lint(tmp_path, arguments=("-f", str(ROOT / "examples")))
    assert (done.code, done.err) == (0, "")


def test_a_file_that_is_not_there_is_a_wrong_call(tmp_path: Path) -> None:
    done = lint(tmp_path, arguments=("-f", "absent.yaml"))
    assert done.code == 2
    assert "absent.yaml" in done.err


HEAD = "apiVersion: kardinal.io/v1alpha1\nkind: {}\nmetadata: {{name: x}}\nspec:\n"
SUBSCRIPTION = HEAD.format("Subscription") + "  pipeline: my-app\n  source:\n    type: gitCommit\n    gitCommit:\n"
SUBSCRIPTION += "      repository: https://git.example.com/acme/app\n      path: src\n"
METRIC_CHECK = HEAD.format("MetricCheck") + "  provider: {address: https://prometheus.example.com}\n  query: up\n"
METRIC_CHECK += "  successCondition: '> 0.5'\n"
APPROVAL = (
    HEAD.format("Approval") + "  bundle: app-1\n  uid: 4f2c\n  environment: prod\n  gate: platform-policies/signoff\n"
)
APPROVAL += "  approver: dana\n"


def test_pull_request_fields_without_pull_requests_are_a_warning(tmp_path: Path) -> None:
    pipeline = HEAD.format("Pipeline") + "  git:\n    url: https://github.com/acme/gitops\n    provider: github\n"
    pipeline += "    pullRequest: {reviewers: [alice]}\n  environments: [{name: dev}]\n"
    done = lint(tmp_path, pipeline)
    assert (done.code, done.out) == (0, "1 resource is fine, 1 warning\n")
    (line,) = done.err.splitlines()
    assert line.startswith("0.yaml:8: warning: Pipeline/x spec.git.pullRequest: no environment has pull requests: ")


def test_kinds_that_are_stored_and_not_executed_are_checked_and_said_to_be(tmp_path: Path) -> None:
    done = lint(tmp_path, SUBSCRIPTION, METRIC_CHECK, APPROVAL)
    assert (done.code, done.out) == (0, "3 resources are fine, 1 warning\n")
    assert done.err.splitlines() == [
        "0.yaml:1: warning: Subscription/x: this version stores a Subscription and does not act on it",
    ]


@pytest.mark.parametrize(
    ("good", "before", "after", "said"),
    [
        (SUBSCRIPTION, "pipeline:", "pipelines:", "0.yaml:5: Subscription/x spec.pipelines: unknown field; did you"),
        (SUBSCRIPTION, "path: src", "path: ../src", "0.yaml:10: Subscription/x spec.source.gitCommit.path: "),
        (SUBSCRIPTION, "type: gitCommit", "type: git", "0.yaml:7: Subscription/x spec.source.type: "),
        (
            METRIC_CHECK,
            "query: up",
            "query: 'up > {{ .Version }}'",
            "0.yaml:6: MetricCheck/x spec.query: a placeholder",
        ),
        (
            METRIC_CHECK,
            "'> 0.5'",
            "'0.5'",
            "MetricCheck/x spec.successCondition: must compare the value with a number, such as >= 0.99",
        ),
        (
            METRIC_CHECK,
            "query: up",
            "query: up\n  interval: 1s",
            "0.yaml:7: MetricCheck/x spec.interval: must be between",
        ),
        (
            METRIC_CHECK,
            "query: up",
            "query: up\n  range: {duration: 5m, step: 1m}",
            "MetricCheck/x spec.reduce: a range",
        ),
        (APPROVAL, "gate: platform-policies/", "gate: ", "0.yaml:8: Approval/x spec.gate: "),
        (
            APPROVAL,
            "  environment: prod\n",
            "",
            "0.yaml:4: Approval/x spec: an Approval for a gate names the environment",
        ),
        (METRIC_CHECK, "'> 0.5'", "'> half'", "0.yaml:7: MetricCheck/x spec.successCondition: "),
        (METRIC_CHECK, "query: up", "querry: up", "0.yaml:6: MetricCheck/x spec.querry: unknown field; did you mean"),
    ],
)
def test_a_mistake_in_what_is_stored_only_is_told(
    tmp_path: Path, good: str, before: str, after: str, said: str
) -> None:
    assert before in good
    done = lint(tmp_path, good.replace(before, after, 1))
    assert done.code == 1
    assert said in done.err


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("expression: bundle.labels.hotfix == true", "0.yaml:6: warning: PolicyGate/x spec.expression: bundle.labels"),
        (
            "expression: bundle.upstreamSoakMinutes >= 30",
            "0.yaml:6: warning: PolicyGate/x spec.expression: it never opens before dev of Pipeline my-app in acme: ",
        ),
        (
            "expression: 'true'\n  upstreamEnvironment: dev",
            "0.yaml:7: warning: PolicyGate/x spec.upstreamEnvironment: is of the instances",
        ),
    ],
)
def test_ineffective_gate_field_is_a_warning(tmp_path: Path, gate: str, said: str) -> None:
    head = HEAD.format("PolicyGate").replace("{name: x}", "\n  {name: x, namespace: acme}")
    done = lint(tmp_path, f"{head}  {gate}\n", GOOD.replace("  name: my-app", "  name: my-app\n  namespace: acme"))
    assert (done.code, done.out) == (0, "2 resources are fine, 1 warning\n")
    assert said in done.err


def test_a_gate_in_a_namespace_without_a_pipeline_of_the_files_is_a_warning(tmp_path: Path) -> None:
    pipeline = GOOD.replace("  name: my-app", "  name: my-app\n  namespace: acme")

    def gate(namespace: str) -> str:
        return HEAD.format("PolicyGate").replace("name: x", f"name: x, namespace: {namespace}") + "  expression: 'true'"

    done = lint(tmp_path, pipeline, gate("other"))
    assert done.code == 0
    assert "PolicyGate/x metadata.name: namespace other has no Pipeline" in done.err
    for namespace in ("acme", "platform-policies"):
        assert lint(tmp_path, pipeline, gate(namespace)).err == ""
    assert lint(tmp_path, GOOD, gate("other")).err == ""


def test_facts_of_a_cluster_are_checked_with_their_line(tmp_path: Path) -> None:
    document = """\
apiVersion: kardinal.io/v1alpha1
kind: CatalogCluster
metadata: {name: c-one}
spec:
  tenant: t-acme
  facts:
    distribution: k3s
  dynamicfacts: {}
"""
    done = lint(tmp_path, document)
    assert done.code == 1
    assert "0.yaml:6: CatalogCluster/c-one spec.facts: " in done.err
    assert "0.yaml:8: CatalogCluster/c-one spec.dynamicfacts: unknown field; did you mean dynamicFacts?" in done.err
