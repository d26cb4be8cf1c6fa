"""The differences between a Graph and the one that its Bundle would get today."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.policy.matching import GateTemplate, collect
from kardinal.promotion.translation.drift import Drift, drift_of
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import translate
from tests.support import objects
from tests.support.registry import REGISTRY
from tests.translation.values import MORNING

FEATURES = Features(registry=REGISTRY, allow_local_repositories=True)
URL = "https://git.example.com/acme/gitops.git"
TEAM = "team"
POLICIES = "policies"


def pipeline(*environments: Any, url: str = URL, **fields: Any) -> Pipeline:
    made = objects.pipeline(url, environments=environments or ("dev", "prod"), namespace=TEAM, provider="git")
    made["spec"]["git"] |= fields
    return Pipeline.model_validate(made)


def bundle(states: dict[str, str] | None = None, *, skip: tuple[str, ...] = (), displaced: str = "") -> Bundle:
    made = objects.bundle("my-app-1", namespace=TEAM, intent={"skip": list(skip)})
    entries: dict[str, Any] = {name: {"state": state} for name, state in (states or {}).items()}
    if displaced:
        entries[displaced] = {"state": "Failed", "displacedBy": "my-app-2"}
    made["metadata"]["uid"] = "uid"
    made["status"] = {"environments": entries}
    return Bundle.model_validate(made)


def gates(*names: str, applies_to: str = "prod") -> tuple[GateTemplate, ...]:
    made = [objects.gate(name, "true", applies_to=applies_to, namespace=POLICIES) for name in names]
    found = map(PolicyGate.model_validate, made)
    return collect(found, pipeline="my-app", namespace=TEAM, policy_namespaces=[POLICIES])


def drift(today: Pipeline, subject: Bundle | None = None, *, before: Any = (), now: Any = ()) -> Drift:
    subject = subject or bundle()
    graph = translate(pipeline(), subject, before, features=FEATURES, now=MORNING)
    return drift_of(graph, today, subject, now)


def test_a_graph_as_it_would_be_made_today_has_none() -> None:
    assert not drift(pipeline(), before=gates("soak"), now=gates("soak"))


@pytest.mark.parametrize(
    ("today", "fields"),
    [
        (pipeline(url="https://git.example.com/acme/mended.git"), {"dev": ("git.url",), "prod": ("git.url",)}),
        (pipeline(branch="release"), {"dev": ("git.branch",), "prod": ("git.branch",)}),
        (pipeline(objects.environment("dev", path="elsewhere"), "prod"), {"dev": ("path",)}),
        (
            pipeline("dev", objects.environment("prod", approval="pr-review", health={"timeout": "1h"})),
            {"prod": ("approval", "health", "steps")},
        ),
        (pipeline("dev"), {"prod": ("the environment is gone",)}),
        (pipeline("dev", objects.environment("prod", dependsOn=["dev"])), {}),
        (pipeline("prod", "dev"), {"dev": ("dependsOn",), "prod": ("dependsOn",)}),
    ],
    ids=["repository", "branch", "path", "approval and proof", "environment", "the same order", "order"],
)
def test_fields_that_are_others_are_named_by_environment(today: Pipeline, fields: dict[str, Any]) -> None:
    found = drift(today)
    assert (found.fields, found.gates, found.of_pipeline) == (fields, {}, bool(fields))


def test_environments_that_are_verified_or_passed_are_not_compared() -> None:
    today = pipeline(url="https://git.example.com/acme/mended.git")
    assert set(drift(today, bundle({"dev": "Pending"})).fields) == {"dev", "prod"}
    graph = translate(pipeline(), bundle(), (), features=FEATURES, now=MORNING)
    assert set(drift_of(graph, today, bundle({"dev": "Verified"}), ()).fields) == {"prod"}
    assert set(drift_of(graph, today, bundle({"dev": "Failed"}, displaced="prod"), ()).fields) == {"dev"}


def test_gates_that_came_and_went_are_named() -> None:
    found = drift(pipeline(), before=gates("soak", "weekend"), now=gates("soak", "release"))
    assert found.gates == {"prod": ("gate policies/release is new", "gate policies/weekend is gone")}
    assert not found.of_pipeline
    assert found


def test_a_gate_that_stands_elsewhere_today_is_gone_here_and_new_there() -> None:
    found = drift(pipeline(), before=gates("soak"), now=gates("soak", applies_to="dev"))
    assert found.gates == {"dev": ("gate policies/soak is new",), "prod": ("gate policies/soak is gone",)}


def test_an_environment_that_came_since_is_no_change_of_the_others() -> None:
    found = drift(pipeline("dev", "prod", objects.environment("eu", dependsOn=["dev"])))
    assert (found.changed, found.added) == ({}, ("eu",))
    assert found


def test_a_skipped_environment_is_neither_gone_nor_new() -> None:
    subject = bundle(skip=("dev",))
    assert not drift(pipeline(), subject)


def test_a_pipeline_that_cannot_be_used_is_not_compared() -> None:
    broken = pipeline(objects.environment("dev", dependsOn=["prod"]), objects.environment("prod", dependsOn=["dev"]))
    assert not drift(broken)


def test_text_that_looks_like_an_expression_is_compared_as_it_was_written() -> None:
    odd = pipeline(objects.environment("dev", path="a/${b}"), "prod")
    graph = translate(odd, bundle(), (), features=FEATURES, now=MORNING)
    assert not drift_of(copy.deepcopy(graph), odd, bundle(), ())
