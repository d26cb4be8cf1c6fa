"""Leaving out an environment that an org gate protects needs a permission that says yes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.promotion.api import PolicyGate
from kardinal.promotion.translation.errors import SkipDenied
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import translate
from tests.support.registry import REGISTRY
from tests.translation.values import MORNING, bundle, edges, gates, org_gate, pipeline, team_gate, translated

SKIP = {"skip": ["staging"]}
PERMISSION = {"kardinal.io/type": "skip-permission"}


def protecting(**fields: object) -> PolicyGate:
    return org_gate("soak", "true", applies_to="staging", **fields)


def permission(expression: str, *, applies_to: str | None = "staging") -> PolicyGate:
    return org_gate("hotfix", expression, applies_to=applies_to, labels=PERMISSION)


def denied(*found: PolicyGate, labels: dict[str, str] | None = None) -> SkipDenied:
    with pytest.raises(SkipDenied) as caught:
        translated(what=bundle(intent=SKIP, labels=labels), found=found)
    return caught.value


def test_an_environment_without_org_gates_is_skipped_freely() -> None:
    found = [team_gate("soak", applies_to="staging"), org_gate("soak", applies_to="prod")]
    assert list(edges(translated(what=bundle(intent=SKIP), found=found))) == ["dev", "prod"]


def test_an_org_gate_denies_the_skip_and_both_are_named() -> None:
    error = denied(protecting())
    assert (error.environment, error.gate) == ("staging", "soak")
    assert str(error) == "skipping staging is denied by gate soak: no skip permission applies to staging"


def test_an_org_gate_for_every_environment_protects_each_of_them() -> None:
    assert denied(org_gate("everywhere", applies_to=None)).gate == "everywhere"


def test_the_permission_is_evaluated_for_this_bundle() -> None:
    found = [protecting(), permission('bundle.labels.hotfix == "true"')]
    allowed = translated(what=bundle(intent=SKIP, labels={"hotfix": "true"}), found=found)
    assert list(edges(allowed)) == ["dev", "prod"]
    assert "bundle.labels.hotfix = false" in str(denied(*found, labels={"hotfix": "false"}))


def test_the_reason_tells_how_to_write_a_permission_that_compares_a_label_with_true() -> None:
    error = denied(protecting(), permission("bundle.labels.hotfix == true"), labels={"hotfix": "true"})
    assert 'labels are strings, write bundle.labels.hotfix == "true"' in str(error)


def test_a_permission_for_another_environment_permits_nothing() -> None:
    denied(protecting(), permission("true", applies_to="prod"))


def test_a_permission_of_the_team_permits_nothing() -> None:
    denied(protecting(), team_gate("hotfix", "true", applies_to="staging", labels=PERMISSION))


def test_one_permission_that_says_yes_is_enough() -> None:
    found = [protecting(), permission("false"), org_gate("b", "true", applies_to="staging", labels=PERMISSION)]
    assert list(edges(translated(what=bundle(intent=SKIP), found=found))) == ["dev", "prod"]


@pytest.mark.parametrize("expression", ["", "bundle.labels.absent == 'x'", "1 + 1", "metrics.errors < 1", "nonsense("])
def test_a_permission_that_cannot_be_evaluated_permits_nothing(expression: str) -> None:
    denied(protecting(), permission(expression or "schedule.isWeekend"))


def test_a_permission_is_asked_at_the_moment_of_the_translation() -> None:
    found = gates([protecting(), permission("schedule.isWeekend")])
    saturday = MORNING + timedelta(days=4)
    graph = translate(
        pipeline(),
        bundle(intent=SKIP),
        found,
        features=Features(registry=REGISTRY, allow_local_repositories=True),
        now=saturday,
    )
    assert list(edges(graph)) == ["dev", "prod"]


def test_skipping_what_the_target_cuts_needs_no_permission() -> None:
    what = bundle(intent={"target": "dev", "skip": ["staging"]})
    assert list(edges(translated(what=what, found=[protecting()]))) == ["dev"]


def test_a_permission_is_no_gate() -> None:
    graph = translated(found=[permission("true", applies_to=None)])
    assert not [node for node in graph["spec"]["nodes"] if node.get("template", {}).get("kind") == "PolicyGate"]
