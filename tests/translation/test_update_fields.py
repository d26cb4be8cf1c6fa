"""The fields of `update` fit the steps, or the Pipeline says which does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.objects import environment
from tests.translation.test_supported import refused
from tests.translation.values import bundle, pipeline, translated


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
            "'image..tag' is not a path at character 6",
        ),
    ],
)
def test_a_field_that_no_step_can_use_is_refused(fields: dict[str, Any], field: str, message: str) -> None:
    (problem,) = refused(way=pipeline(environment("dev", **fields)))
    assert (problem.field, problem.reason) == (f"spec.environments[0].{field}", "InvalidUpdate")
    assert message in problem.message


def test_charts_that_no_step_would_set_are_refused_for_the_environments_on_the_way() -> None:
    charts = [{"repository": "https://charts.example.com", "name": "web", "version": "1.0.0"}]
    edits = ("git-clone", "kustomize-set-image", "helm-set-chart", "git-commit", "git-push", "health-check")
    sets = environment("dev", steps=[{"uses": uses} for uses in edits])
    what = bundle(artifacts={"images": [{"reference": "ghcr.io/acme/app:1"}], "charts": charts})
    (problem,) = refused(way=pipeline(sets, "prod"), what=what)
    assert (problem.subject, problem.field) == ("Bundle/app-1", "spec.artifacts.charts")
    assert "no step of environment prod sets charts" in problem.message
    assert translated(pipeline(sets), what)
