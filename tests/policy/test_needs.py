"""Which expressions are never true without the soak."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kardinal import cel
from kardinal.promotion.policy.context import SOAK
from kardinal.promotion.policy.needs import needs

SCOPE = {"bundle": {"labels": {"a": "b"}}, "schedule": {"isWeekend": False}}

NEEDED = [
    "bundle.upstreamSoakMinutes >= 30",
    '30 <= bundle["upstreamSoakMinutes"]',
    "bundle.upstreamSoakMinutes >= 30 && !schedule.isWeekend",
    "!(bundle.upstreamSoakMinutes < 30)",
    "has(bundle.upstreamSoakMinutes)",
    "has(bundle.upstreamSoakMinutes) && bundle.upstreamSoakMinutes > 3",
    "schedule.isWeekend ? bundle.upstreamSoakMinutes > 60 : bundle.upstreamSoakMinutes > 30",
    "bundle.upstreamSoakMinutes > 60 ? true : false",
    "bundle.upstreamSoakMinutes > 60 || bundle.upstreamSoakMinutes + 1 > 30",
]
NOT_NEEDED = [
    "true",
    "schedule.isWeekend || bundle.upstreamSoakMinutes >= 30 || true",
    'bundle.upstreamSoakMinutes >= 30 || bundle.labels.a == "b"',
    "!has(bundle.upstreamSoakMinutes) || bundle.upstreamSoakMinutes >= 30",
    "(has(bundle.upstreamSoakMinutes) ? bundle.upstreamSoakMinutes : 99) >= 30",
    "schedule.isWeekend ? bundle.upstreamSoakMinutes > 60 : true",
    "!(schedule.isWeekend && bundle.upstreamSoakMinutes < 30)",
    "bundle.?upstreamSoakMinutes.orValue(99) >= 30",
    "['bundle.upstreamSoakMinutes'].exists(bundle, bundle == 'bundle.upstreamSoakMinutes')",
]


@pytest.mark.parametrize("expression", NEEDED)
def test_an_expression_that_needs_the_soak_is_not_true_without_it(expression: str) -> None:
    assert needs(expression, SOAK)
    assert _without_soak(expression) is not True


@pytest.mark.parametrize("expression", NOT_NEEDED)
def test_an_expression_that_can_be_true_without_the_soak_does_not_need_it(expression: str) -> None:
    assert not needs(expression, SOAK)
    assert _without_soak(expression) is True


def _without_soak(expression: str) -> object:
    outcome = cel.compile(expression).evaluate(SCOPE, now=datetime(2026, 3, 3, tzinfo=UTC))
    return outcome.json if isinstance(outcome, cel.Value) else None
