"""Mistakes in `health` are told with their field."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api.health import Health
from kardinal.promotion.api.health_fields import health_problems, health_type


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
def test_checkable_health_fields_are_accepted(health: dict[str, Any]) -> None:
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
def test_meaningless_health_field_is_named(health: dict[str, Any], field: str, words: str) -> None:
    found = list(health_problems(Health.model_validate(health)))
    assert [place for place, _ in found] == [field]
    assert words in found[0][1]


@pytest.mark.parametrize(
    ("health", "delegate", "type_"),
    [
        ({}, "none", None),
        ({"argocd": {"name": "a"}}, "none", "argocd"),
        ({"argoRollouts": {"name": "a"}}, "none", "argoRollouts"),
        ({"argoRollouts": {"name": "a"}}, "argoRollouts", None),
        ({"argoRollouts": {"name": "a"}, "argocd": {"name": "a"}}, "argoRollouts", "argocd"),
        ({"type": "flagger"}, "flagger", "flagger"),
        ({"type": "flux", "flux": {"name": "a"}, "flagger": {"name": "a"}}, "flagger", "flux"),
    ],
)
def test_the_object_of_a_delegate_may_stand_beside_the_proof_and_does_not_choose_it(
    health: dict[str, Any], delegate: str, type_: str | None
) -> None:
    read = Health.model_validate(health)
    assert list(health_problems(read, delegate=delegate)) == []
    assert health_type(read, delegate=delegate) == type_


def test_the_object_of_another_delegate_is_refused() -> None:
    read = Health.model_validate({"type": "argocd", "argocd": {"name": "a"}, "flagger": {"name": "a"}})
    assert [place for place, _ in health_problems(read, delegate="argoRollouts")] == ["flagger"]
