"""Mistakes in `health` are told with their field."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.api.health import Health
from kardinal.steps.health_fields import health_problems


@pytest.mark.parametrize(
    "health",
    [
        {},
        {"resource": {"name": "web"}},
        {"resource": {"names": ["web", "worker"], "kind": "StatefulSet"}},
        {"resource": {"selector": {"app.kubernetes.io/name": "web", "empty": ""}}},
        {"type": "argocd", "argocd": {"name": "web"}},
        {"flux": {"name": "web"}},
        {"type": "acme-own", "resource": {"name": "web"}},
    ],
)
def test_what_can_be_looked_at_is_accepted(health: dict[str, Any]) -> None:
    assert list(health_problems(Health.model_validate(health))) == []


@pytest.mark.parametrize(
    ("health", "field", "words"),
    [
        ({"resource": {"name": "a", "names": ["b"]}}, "resource.names", "use one of name, names and selector"),
        ({"resource": {"names": ["b"], "selector": {"a": "b"}}}, "resource.selector", "stands beside names"),
        ({"resource": {"selector": {"a,b": "c"}}}, "resource.selector", "no label"),
        ({"resource": {"selector": {"a in (b)": "c"}}}, "resource.selector", "no label"),
        ({"resource": {"selector": {"a": "b,c"}}}, "resource.selector", "no label"),
        ({"resource": {"selector": {"a/b/c": "d"}}}, "resource.selector", "no label"),
        ({"type": "argocd"}, "argocd", "name the object"),
        ({"type": "flagger"}, "flagger", "name the object"),
        ({"type": "resource", "flux": {"name": "a"}}, "flux", "is not looked at with type resource"),
        ({"argocd": {"name": "a"}, "flux": {"name": "a"}}, "flux", "stands beside argocd"),
        (
            {"type": "argocd", "argocd": {"name": "a"}, "resource": {"name": "a"}},
            "resource",
            "is not looked at with type argocd",
        ),
    ],
)
def test_what_means_nothing_is_told_with_its_field(health: dict[str, Any], field: str, words: str) -> None:
    found = list(health_problems(Health.model_validate(health)))
    assert [place for place, _ in found] == [field]
    assert words in found[0][1]
