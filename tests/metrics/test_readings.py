"""The metrics that an expression reads: how long a result counts, and when an answer turns by age alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kardinal.promotion.metrics.outcomes import MetricOutcome
from kardinal.promotion.metrics.readings import MetricReading, MetricReadings, values_read
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import evaluate
from kardinal.promotion.policy.transition import next_transition
from tests.policy.test_evaluate import bundle

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
COUNTS = timedelta(seconds=130)


def context() -> GateContext:
    outcome = MetricOutcome(status="Success", at=NOW, since=NOW, value=0.995)
    readings = MetricReadings({"rate": MetricReading(outcome, NOW + COUNTS), "new": None}, {"gone": "there is none"})
    return GateContext(bundle(), "prod", "auto", metrics=readings)


@pytest.mark.parametrize(
    ("expression", "later", "ready"),
    [
        ('metrics["rate"].value > 0.99', timedelta(), True),
        ('metrics["rate"].value > 0.99', COUNTS - timedelta(seconds=1), True),
        ('metrics["rate"].value > 0.99', COUNTS, False),
        ('metrics["rate"].status == "Unknown"', COUNTS, True),
        ('metrics["rate"].ageSeconds == 7', timedelta(seconds=7), True),
        ('metrics["new"].status == "Unknown"', timedelta(), True),
        ('metrics["new"].value > 0', timedelta(), False),
        ('!has(metrics["new"].value)', timedelta(), True),
        ('metrics["gone"].status == "Unknown"', timedelta(), False),
    ],
)
def test_result_counts_for_a_while(expression: str, later: timedelta, ready: bool) -> None:
    assert evaluate(expression, context(), now=NOW + later).ready is ready


@pytest.mark.parametrize(
    ("expression", "turns"),
    [
        ('metrics["rate"].value > 0.99', COUNTS),
        ('metrics["rate"].ageSeconds < 90', timedelta(seconds=90)),
        ('metrics["rate"].ageSeconds <= 90', timedelta(seconds=90, microseconds=1)),
        ('metrics["rate"].value > 0.999', None),
        ('metrics["new"].value > 0.9', None),
    ],
)
def test_answer_turns_by_age(expression: str, turns: timedelta | None) -> None:
    assert next_transition(expression, context(), now=NOW) == (NOW + turns if turns is not None else None)


def test_values_are_found_among_what_a_gate_has_read() -> None:
    read = [
        ("metrics.success-rate.value", "0.995"),
        ("metrics.success-rate.status", "Success"),
        ("metrics.a.b.value", "2"),
        ("metrics.broken.value", "…"),
        ("bundle.version", "1"),
    ]
    assert values_read(read) == {"success-rate": 0.995, "a.b": 2.0}
