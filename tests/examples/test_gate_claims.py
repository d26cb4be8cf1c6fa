"""The claims of the example gates, held against the example Pipeline."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from kardinal.api import Bundle, Pipeline, PolicyGate
from kardinal.objects import JsonObject
from kardinal.policy.attestation import NOT_ATTESTED, Attestation, Scope
from kardinal.policy.matching import collect
from kardinal.translation import Features
from kardinal.translation.errors import SkipDenied
from kardinal.translation.topology import read_topology
from kardinal.translation.translate import translate
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
    graph = _graph(_bundle(skip=["staging"]), Attestation(Scope("hotfix", ("staging",))))
    assert list(read_topology(graph).steps) == ["dev", "prod"]
    with pytest.raises(SkipDenied):
        _graph(_bundle(skip=["staging"]), Attestation(Scope("hotfix", ())))
