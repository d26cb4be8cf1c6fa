"""Facts of a promotion lead to its plan and its projection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kardinal.objects.capabilities import Capabilities
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.health_adapters import BUILTIN_ADAPTERS
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.registry import Registry
from kardinal_agent.execution.observe import Facts, Found
from kardinal_agent.execution.rules import PlannedSequence, Plans, Projection, project

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
GIT = {"url": "https://example.com/repo", "provider": "github", "layout": "directory"}
STEPS = [{"uses": uses} for uses in ("git-clone", "kustomize-set-image", "git-commit", "git-push", "health-check")]
REVIEWED: dict[str, Any] = {
    "approval": "pr-review",
    "steps": [*STEPS[:-1], {"uses": "open-pr"}, {"uses": "wait-for-merge"}, STEPS[-1]],
}
TIMEOUT = {"timeout": "10m"}


_CAPABILITIES = {"github": Capabilities(pull_requests=True), "git": Capabilities(pull_requests=False)}


class Providers(Mapping[str, Capabilities]):
    """The providers of a registry, with the number of looks at them."""

    def __init__(self) -> None:
        self.looks = 0

    def __getitem__(self, name: str) -> Capabilities:
        self.looks += 1
        return _CAPABILITIES[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_CAPABILITIES)

    def __len__(self) -> int:
        return len(_CAPABILITIES)


PROVIDERS = Providers()
REGISTRY = Registry(steps=BUILTIN_STEPS, providers=PROVIDERS, adapters=BUILTIN_ADAPTERS)


def promotion_step(**spec: Any) -> PromotionStep:
    return PromotionStep.model_validate(
        {
            "metadata": {"name": "my-app-1-prod", "namespace": "team", "uid": "u"},
            "spec": {
                "pipeline": "my-app",
                "environment": "prod",
                "bundleRef": "my-app-1",
                "path": "environments/prod",
                "git": GIT,
                "health": {"type": "resource", "timeout": "10m", "resource": {"namespace": "prod"}},
                "steps": STEPS,
            }
            | spec,
        }
    )


def bundle(phase: str = "Promoting", tag: str = "1.0", **entry: Any) -> Bundle:
    images = [{"reference": f"ghcr.io/acme/app:{tag}"}]
    return Bundle.model_validate(
        {
            "metadata": {"name": "my-app-1", "namespace": "team"},
            "spec": {"artifacts": {"images": images}},
            "status": {"phase": phase, "environments": {"prod": {"state": "Promoting"} | entry} if entry else {}},
        }
    )


def plan_of(step: PromotionStep | None = None) -> PlannedSequence:
    return Plans(REGISTRY, unprovable=lambda _: None).of(step or promotion_step(), bundle())


def projected(step: PromotionStep, of: Bundle, *, shard: str | None = None, landed: bool = False) -> Projection:
    facts = Facts(step=step, bundle=of, status=PromotionStepStatus(), now=NOW, shard=shard, found=Found(landed=landed))
    return project(facts, plan_of())


def test_a_plan_has_the_steps_of_the_spec() -> None:
    plan = plan_of()
    assert plan.refusal is None
    assert [step.name for step in plan.sequence] == [each["uses"] for each in STEPS]


def test_a_plan_is_made_once_for_each_pair_of_specs() -> None:
    plans = Plans(REGISTRY, unprovable=lambda _: None)
    before = PROVIDERS.looks
    first = plans.of(promotion_step(), bundle())
    assert plans.of(promotion_step(), bundle(phase="Failed", state="Failed")) is first
    assert PROVIDERS.looks == before + 1
    assert plans.of(promotion_step(), bundle(tag="2.0")) is not first
    assert plans.of(promotion_step(steps=STEPS[:-1]), bundle()).refusal is not None
    assert PROVIDERS.looks == before + 3


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"git": {"provider": "bitbucket"}}, "git.provider: 'bitbucket' is not available"),
        ({"health": {"type": "spinnaker", **TIMEOUT}}, "health.type: 'spinnaker' is not available"),
        (
            {"health": {"type": "argocd", **TIMEOUT}},
            "health.argocd: is missing: with type argocd, name the object that speaks",
        ),
        ({"update": {"strategy": "oci"}}, "update.strategy: 'oci' is not available"),
        ({"delivery": {"delegate": "flagger"}}, "health.flagger: is missing"),
        ({"git": {"provider": "git"}, **REVIEWED}, "approval: "),
        ({"steps": [{"uses": "git-clon"}]}, "steps[0].uses: unknown step"),
    ],
)
def test_unsupported_spec_is_refused(spec: dict[str, Any], words: str) -> None:
    spec = {name: GIT | value if name == "git" else value for name, value in spec.items()}
    plan = plan_of(promotion_step(**spec))
    assert plan.sequence == ()
    assert (plan.refusal or "").startswith(words)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("steps", "steps"),
        ("health", "health.timeout"),
        ("health.type", "health.type"),
        ("health.timeout", "health.timeout"),
        ("health.resource", "health.resource.namespace"),
        ("health.resource.namespace", "health.resource.namespace"),
    ],
)
def test_values_resolved_by_translation_are_never_defaulted(path: str, field: str) -> None:
    spec = promotion_step().model_dump(by_alias=True, exclude_unset=True, mode="json")["spec"]
    *parents, last = path.split(".")
    part = spec
    for name in parents:
        part = part[name]
    del part[last]
    step = PromotionStep.model_validate({"metadata": {"name": "my-app-1-prod", "uid": "u"}, "spec": spec})
    message = f"{field}: is missing; only a Pipeline may leave it out, a PromotionStep states every value"
    assert plan_of(step).refusal == message


def test_a_proof_that_is_not_to_be_had_is_looked_for_each_time() -> None:
    problem: list[str] = []
    plans = Plans(REGISTRY, unprovable=lambda _: problem[0] if problem else None)
    assert plans.of(promotion_step(), bundle()).refusal is None
    problem.append("health.type: is not available")
    assert plans.of(promotion_step(), bundle()) == PlannedSequence(refusal="health.type: is not available")


@pytest.mark.parametrize(
    ("of", "superseded"),
    [
        (bundle(admittedAt="2026-03-03T10:00:00Z"), False),
        (bundle(displacedBy="my-app-2"), True),
        (bundle(stopped="stopped because eu failed"), True),
        (bundle(phase="Superseded", admittedAt="2026-03-03T10:00:00Z"), True),
        (bundle(phase="Superseded"), False),
        (bundle(attempt=2, displacedBy="my-app-2"), False),
    ],
    ids=["admitted", "displaced", "stopped", "ended", "without an entry", "of another attempt"],
)
def test_a_promotion_is_superseded_as_the_entry_of_its_attempt_says(*, of: Bundle, superseded: bool) -> None:
    assert projected(promotion_step(), of).superseded is superseded
    assert not projected(promotion_step(), of, landed=True).superseded


def test_a_promotion_is_admitted_by_the_entry_of_its_attempt() -> None:
    admitted = bundle(admittedAt="2026-03-03T10:00:00Z")
    assert projected(promotion_step(), admitted).admitted
    assert not projected(promotion_step(attempt=2), admitted).admitted
    waits = projected(promotion_step(), bundle(message="waits for Bundle my-app-0"))
    assert (waits.admitted, waits.queued) == (False, "waits for Bundle my-app-0")


def test_an_agent_executes_the_promotions_of_its_shard() -> None:
    assert projected(promotion_step(), bundle()).mine
    assert not projected(promotion_step(shard="eu"), bundle()).mine
    assert projected(promotion_step(shard="eu"), bundle(), shard="eu").mine
