"""The claims of the example gates, held against the example Pipeline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from kardinal.git.secret_hosts import refused_host
from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.policy.attestation import NOT_ATTESTED, Attestation, TokenScope
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import evaluate
from kardinal.promotion.policy.matching import collect
from kardinal.promotion.translation import Features
from kardinal.promotion.translation.errors import SkipDenied
from kardinal.promotion.translation.preview import preview
from kardinal.promotion.translation.topology import read_topology
from kardinal.promotion.translation.translate import translate
from tests.policy.soaks import soak_since
from tests.support.registry import REGISTRY

EXAMPLES = Path(__file__).parents[2] / "examples"
PIPELINE = Pipeline.model_validate(yaml.safe_load((EXAMPLES / "pipeline.yaml").read_text()))
GATES = collect(
    map(PolicyGate.model_validate, yaml.safe_load_all((EXAMPLES / "gates.yaml").read_text())),
    pipeline="my-app",
    namespace="default",
    policy_namespaces=("platform-policies",),
)


def _bundle(labels: dict[str, str] | None = None, **intent: object) -> Bundle:
    example = yaml.safe_load((EXAMPLES / "bundle.yaml").read_text())
    example["metadata"]["labels"] |= labels or {}
    return Bundle.model_validate({**example, "spec": {**example["spec"], "intent": intent}})


def _graph(bundle: Bundle, attestation: Attestation = NOT_ATTESTED) -> JsonObject:
    features = Features(registry=REGISTRY, allow_local_repositories=True)
    now = datetime(2026, 3, 8, 12, tzinfo=UTC)
    return translate(PIPELINE, bundle, GATES, features=features, now=now, attestation=attestation)


def test_prod_meets_the_gates_of_the_weekend_and_of_the_soak() -> None:
    gates = [(gate.environment, gate.name) for gate in read_topology(_graph(_bundle())).gates]
    assert sorted(gates) == [
        ("prod", "no-weekend-deploys"),
        ("prod", "staging-soak"),
        ("staging", "staging-is-on-the-way"),
    ]


@pytest.mark.parametrize("labels", [{}, {"hotfix": "true"}, {"maySkip": "staging"}])
def test_no_label_lets_a_bundle_skip_staging(labels: dict[str, str]) -> None:
    with pytest.raises(SkipDenied, match="skipping staging is denied"):
        _graph(_bundle(labels, skip=["staging"]))


def test_a_token_that_may_skip_staging_skips_it_and_nothing_else() -> None:
    graph = _graph(_bundle(skip=["staging"]), Attestation(TokenScope("hotfix", ("staging",))))
    assert list(read_topology(graph).steps) == ["dev", "prod"]
    with pytest.raises(SkipDenied):
        _graph(_bundle(skip=["staging"]), Attestation(TokenScope("hotfix", ())))


def test_an_environment_before_which_no_org_gate_stands_is_left_out_by_anyone() -> None:
    assert list(read_topology(_graph(_bundle(skip=["dev"]))).steps) == ["staging", "prod"]


SUNDAY = datetime(2026, 3, 8, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("gate", "now", "soaked", "opens"),
    [
        ("no-weekend-deploys", SUNDAY, 60, False),
        ("no-weekend-deploys", SUNDAY + timedelta(days=1), 0, True),
        ("staging-soak", SUNDAY, 29, False),
        ("staging-soak", SUNDAY, 30, True),
        # It holds nothing.
        ("staging-is-on-the-way", SUNDAY, 0, True),
    ],
)
def test_a_gate_holds_what_its_message_says(gate: str, now: datetime, soaked: int, opens: bool) -> None:
    (found,) = (each for each in GATES if each.name == gate)
    soak = soak_since(now - timedelta(minutes=soaked))
    context = GateContext(_bundle(), "prod", "pr-review", soak=soak)
    assert evaluate(found.spec.expression, context, now=now).ready is opens


def test_prod_of_the_pipeline_is_reviewed_and_the_others_are_not() -> None:
    features = Features(registry=REGISTRY, allow_local_repositories=True)
    steps = preview(PIPELINE, _bundle(), features=features)
    reviewed = {step.spec.environment: any(each.uses == "open-pr" for each in step.spec.steps) for step in steps}
    assert reviewed == {"dev": False, "staging": False, "prod": True}


def test_the_secret_of_the_init_file_is_one_as_its_comment_says() -> None:
    line = next(line for line in (EXAMPLES / "kardinal.yaml").read_text().splitlines() if "secret:" in line)
    name, _, marks = line.partition(":")[2].partition("#")
    label, host = (word.rstrip(",") for word in marks.split() if "=" in word)
    marked = {kind: dict([mark.split("=")]) for kind, mark in (("labels", label), ("annotations", host))}
    secret = {"metadata": {"name": name.strip(), "namespace": "default", **marked}}
    assert refused_host(secret, "github.com") == ""
    assert refused_host(secret, "gitlab.com") != ""
