"""The fields of `update` fit the steps, or the Pipeline says which does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.objects import environment
from tests.translation.test_supported import refused
from tests.translation.values import bundle, node, pipeline, translated

LISTED_BY_HAND = [
    {"uses": "git-clone"},
    {"uses": "yaml-update", "config": {"file": "a.yaml", "updates": [{"path": "tag", "value": "${bundle.version}"}]}},
    {"uses": "git-commit"},
    {"uses": "git-push"},
    {"uses": "health-check"},
]


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        (
            {"update": {"strategy": "kustomize", "helm": {"file": "values.yaml"}}},
            "update.helm",
            "no step reads it: use strategy: helm, or helm-set-image among the steps",
        ),
        (
            {"update": {"strategy": "helm", "replace": {"files": ["a"]}}},
            "update.replace",
            "no step reads it: use strategy: replace, or replace among the steps",
        ),
        (
            {"update": {"strategy": "replace"}},
            "update.replace",
            "replace (step 2) needs files: list them in update.repl",
        ),
        (
            {"update": {"strategy": "helm", "helm": {"values": [{"path": "image.tag"}, {"path": "image..tag"}]}}},
            "update.helm.values[1].path",
            "'image..tag' is not a path",
        ),
        (
            {"update": {"pinDigest": True}, "steps": LISTED_BY_HAND},
            "update.pinDigest",
            "no step writes digests of images: use one of kustomize-set-image, helm-set-image, replace, or leave",
        ),
        (
            {"update": {"strategy": "helm", "helm": {"values": [{"path": "image.tag"}]}, "pinDigest": True}},
            "update.helm.values",
            "no path takes the digest that update.pinDigest asks for: list one with value: digest or",
        ),
    ],
)
def test_a_field_that_no_step_can_use_is_refused(fields: dict[str, Any], field: str, message: str) -> None:
    (problem,) = refused(way=pipeline(environment("dev", **fields)))
    assert (problem.field, problem.reason) == (f"spec.environments[0].{field}", "InvalidUpdate")
    assert message in problem.message


CHARTS = [{"repository": "https://charts.example.com", "name": "web", "version": "1.0.0"}]
IMAGES = [{"reference": "ghcr.io/acme/app:1"}]
PROVEN = {"health": {"resource": {"name": "web"}}}


def listed(*edits: str) -> list[dict[str, str]]:
    return [{"uses": uses} for uses in ("git-clone", *edits, "git-commit", "git-push", "health-check")]


def sequence(way: Any, what: Any) -> list[str]:
    return [step["uses"] for step in node(translated(way, what), "dev")["template"]["spec"]["steps"]]


@pytest.mark.parametrize("edit", ["kustomize-set-image", "helm-set-image", "config-merge"])
def test_charts_that_no_step_would_set_are_refused_for_the_environments_on_the_way(edit: str) -> None:
    way = pipeline(environment("dev", steps=listed("kustomize-set-image", "helm-set-chart")))
    what = bundle(artifacts={"images": IMAGES, "charts": CHARTS})
    assert translated(way, what)
    way = pipeline("dev", environment("prod", steps=listed(edit, "kustomize-set-image")))
    (problem,) = refused(way=way, what=what)
    assert (problem.subject, problem.field) == ("Bundle/app-1", "spec.artifacts.charts")
    assert problem.message == "no step of environment prod brings it"


@pytest.mark.parametrize("strategy", ["kustomize", "helm"])
def test_the_default_sequence_sets_charts_before_images(strategy: str) -> None:
    way = pipeline(environment("dev", update={"strategy": strategy}, **PROVEN))
    both = bundle(artifacts={"images": IMAGES, "charts": CHARTS})
    assert sequence(way, both)[1:-3] == ["helm-set-chart", f"{strategy}-set-image"]
    assert sequence(way, bundle(artifacts={"charts": CHARTS}))[1:-3] == ["helm-set-chart"]
    assert sequence(way, bundle(artifacts={"images": IMAGES}))[1:-3] == [f"{strategy}-set-image"]


def test_a_chart_without_an_image_needs_a_proof_that_is_named() -> None:
    what = bundle(artifacts={"charts": CHARTS})
    (problem,) = refused(way=pipeline("dev", environment("prod", **PROVEN)), what=what)
    assert (problem.field, problem.reason) == ("spec.artifacts.charts", "NoProof")
    assert problem.message == ("nothing is named that proves it in environment dev: a chart has no image to look for")
    assert "health.resource" in problem.remedy
    (problem,) = refused(way=pipeline(environment("dev", health={"timeout": "5m"})), what=what)
    assert problem.reason == "NoProof"
    assert translated(pipeline(environment("dev", **PROVEN)), what)
    assert translated(pipeline(environment("dev", health={"type": "resource"})), what)
    assert translated(pipeline("dev"), bundle(artifacts={"images": IMAGES, "charts": CHARTS}))
