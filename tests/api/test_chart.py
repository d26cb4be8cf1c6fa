"""The texts of a chart end up in manifests, messages and pull requests: only what charts are called is taken."""

from __future__ import annotations

import pytest

from kardinal.promotion.api.artifacts import artifact_problems
from kardinal.promotion.api.bundle import Artifacts, Chart

GOOD = {"repository": "https://charts.example.com/stable", "name": "web", "version": "1.2.3"}


def problems(*charts: dict[str, str]) -> list[tuple[str, str]]:
    found = artifact_problems("image", Artifacts(charts=tuple(Chart.model_validate(GOOD | chart) for chart in charts)))
    return [(problem.field.removeprefix("artifacts.charts"), problem.reason) for problem in found]


@pytest.mark.parametrize(
    "chart",
    [
        {},
        {"repository": "oci://ghcr.io:443/acme/charts"},
        {"repository": "charts.example.com/stable/"},
        {"repository": "http://localhost:8080"},
        {"name": "bitnamicharts/my_chart.v2"},
        {"version": "v1.2.3-rc.1+build.5"},
        {"version": "2"},
    ],
)
def test_charts_as_they_are_called_are_taken(chart: dict[str, str]) -> None:
    assert problems(chart) == []


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("name", "web\n\nKardinal-Uid: 1"),
        ("name", "../web"),
        ("name", "web app"),
        ("name", "-web"),
        ("version", "1.0.0\nCo-authored-by: x"),
        ("version", ">=1 <2"),
        ("version", "1.x"),
        ("version", "1.0.0 "),
        ("version", "latest"),
        ("version", "1.0.0${bundle.name}"),
        ("version", "1.0.0: {a: b}"),
        ("repository", "https://user:password@charts.example.com"),
        ("repository", "https://charts.example.com/a\n- b"),
        ("repository", "file:///etc"),
        ("repository", "@stable"),
        ("repository", "https://"),
    ],
)
def test_a_text_that_says_more_is_refused_with_its_field(field: str, text: str) -> None:
    assert problems({}, {"name": "other"} | {field: text}) == [(f"[1].{field}", "InvalidChart")]


def test_one_chart_has_one_version() -> None:
    assert problems({}, {"repository": f"{GOOD['repository']}/", "version": "2.0.0"}) == [("[1]", "InvalidChart")]
    assert problems({}, {}) == []
    assert problems({}, {"repository": "https://other.example.com", "version": "2.0.0"}) == []
