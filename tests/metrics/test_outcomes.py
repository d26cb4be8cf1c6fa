"""The meaning of answers: values, statuses, rows of failures, and which results are written."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.promotion.api.metric_check import KEPT_RESULTS, MetricCheckSpec, MetricResult
from kardinal.promotion.metrics.outcomes import MetricOutcome, Wanted, after, failed_query, measured, results_of
from kardinal.promotion.metrics.prometheus import PROMETHEUS
from kardinal.promotion.metrics.provider import MetricError, Samples
from kardinal.promotion.metrics.queries import MetricSubject
from tests.metrics.serving import vector

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)
SHOP = MetricSubject("team", "app-1", "prod", "shop", "1.2.3")


def spec(**fields: Any) -> MetricCheckSpec:
    provider = {"address": "http://prometheus:9090"}
    conditions = {"successCondition": ">= 0.99", "failureCondition": "< 0.95"}
    return MetricCheckSpec.model_validate({"provider": provider, "query": "up", **conditions, **fields})


def single(value: float) -> Samples:
    return Samples((value,), single=True)


@pytest.mark.parametrize(
    ("fields", "value", "status"),
    [
        ({}, 0.99, "Success"),
        ({}, 0.97, "Unknown"),
        ({}, 0.94, "Failure"),
        ({"failureCondition": None}, 0.97, "Failure"),
        ({"successCondition": "< 5", "failureCondition": ">= 3"}, 4, "Failure"),
        ({"successCondition": "== -1.5", "failureCondition": "!= 0"}, -1.5, "Failure"),
        ({"successCondition": "== -1.5", "failureCondition": "> 0"}, -1.5, "Success"),
        ({"successCondition": "<=3"}, 3, "Success"),
        ({}, float("-inf"), "Failure"),
        ({}, float("inf"), "Success"),
    ],
)
def test_conditions_decide_the_status(fields: dict[str, Any], value: float, status: str) -> None:
    assert measured(spec(**fields), single(value), now=NOW).status == status


@pytest.mark.parametrize(("behavior", "status"), [("hold", "NoData"), ("pass", "Success"), ("fail", "Failure")])
@pytest.mark.parametrize("values", [(), (float("nan"),)], ids=["empty", "NaN"])
def test_no_data_means_what_the_check_says(behavior: str, status: str, values: tuple[float, ...]) -> None:
    found = measured(spec(noDataBehavior=behavior), Samples(values, single=True), now=NOW)
    assert (found.status, found.value) == (status, None)


@pytest.mark.parametrize(("reduce", "value"), [("min", 1), ("max", 6), ("sum", 9), ("avg", 3)])
def test_several_values_are_reduced(reduce: str, value: float) -> None:
    samples = Samples((1.0, float("nan"), 6.0, 2.0), single=False)
    assert measured(spec(reduce=reduce), samples, now=NOW).value == value


def test_several_values_without_a_reduction_are_an_error() -> None:
    found = measured(spec(), Samples((1.0, 1.0), single=False), now=NOW)
    assert found.status == "Error"
    assert "spec.reduce" in found.message


def test_infinities_that_cancel_out_are_an_error() -> None:
    samples = Samples((float("inf"), float("-inf")), single=False)
    assert measured(spec(reduce="sum"), samples, now=NOW).status == "Error"


def test_row_of_failures_ends_with_a_success_and_not_with_an_outage() -> None:
    row = []
    before: MetricOutcome | None = None
    for step, value in enumerate([0.5, 0.5, None, 0.5, 0.97, 0.5, 0.5, 0.5, 0.5]):
        now = NOW + timedelta(minutes=step)
        found = measured(spec(), single(value), now=now) if value is not None else failed_query("down", now=now)
        before = after(before, found, limit=3)
        row.append(before.failures)
    assert row == [1, 2, 2, 3, 0, 1, 2, 3, 3]


def test_status_lasts_since_its_first_query() -> None:
    first = after(None, measured(spec(), single(1), now=NOW), limit=1)
    second = after(first, measured(spec(), single(0.995), now=NOW + timedelta(minutes=1)), limit=1)
    third = after(second, failed_query("down", now=NOW + timedelta(minutes=2)), limit=1)
    assert [each.since for each in (first, second, third)] == [NOW, NOW, NOW + timedelta(minutes=2)]


def written(*steps: tuple[float, float], lasting: timedelta | None = None) -> list[bool]:
    """Return whether each result is written: pairs of a value and the minutes since the first one."""
    news = []
    results: tuple[MetricResult, ...] = ()
    before: MetricOutcome | None = None
    verified = {SHOP: Wanted(NOW, lasting)} if lasting is not None else {}
    for value, minutes in steps:
        before = after(before, measured(spec(), single(value), now=NOW + timedelta(minutes=minutes)), limit=2)
        found = results_of(results, {SHOP: before}, verified, kept=lambda *_: True)
        news.append(found != results)
        results = found
    return news


def test_result_is_written_with_news_and_every_five_minutes() -> None:
    assert written((1, 0), (0.99, 1), (0.97, 2), (0.98, 3), (0.98, 6.5), (0.98, 7)) == [
        True, False, True, False, False, True,
    ]  # fmt: skip


def test_failures_are_written_up_to_the_limit() -> None:
    assert written((0.5, 0), (0.5, 1), (0.5, 2), (0.5, 3)) == [True, True, False, False]


def test_end_of_a_verification_is_written_at_once() -> None:
    assert written((1, 0), (1, 1), (1, 2), (1, 3), lasting=timedelta(minutes=2)) == [True, False, True, False]


def test_results_of_promotions_that_wait_are_kept_before_others() -> None:
    subjects = [MetricSubject("team", f"app-{number}", "prod", "shop", "1") for number in range(40)]
    outcomes = {
        each: after(None, measured(spec(), single(1), now=NOW + timedelta(minutes=step)), limit=1)
        for step, each in enumerate(subjects)
    }
    verified = {subjects[0]: Wanted(NOW, timedelta(minutes=10))}
    kept = results_of((), outcomes, verified, kept=lambda _, name: name != "app-39")
    assert len(kept) == KEPT_RESULTS
    assert [each.bundle for each in kept] == ["app-0", *(f"app-{number}" for number in range(38, 7, -1))]


@pytest.mark.parametrize(
    ("document", "values", "is_single"),
    [
        (vector(0.5), (0.5,), True),
        (vector(), (), True),
        (vector(1, 2), (1, 2), False),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "3"]}}, (3,), True),
        (
            {"status": "success", "data": {"resultType": "matrix", "result": [{"values": [[1, "1"], [2, "2"]]}]}},
            (1, 2),
            False,
        ),
    ],
)
def test_answers_of_prometheus_are_read(document: Any, values: tuple[float, ...], is_single: bool) -> None:
    found = PROMETHEUS.read(200, json.dumps(document).encode())
    assert (tuple(found.values), found.single) == (values, is_single)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (200, "<html>", "it is not JSON"),
        (502, "bad gateway", "the answer has status 502"),
        (200, "[]", "is none of Prometheus"),
        (200, '{"status": "success"}', "which is no number"),
        (200, '{"status": "success", "data": {"resultType": "string", "result": [1, "a"]}}', "gives a string"),
        (
            200,
            '{"status": "success", "data": {"resultType": "vector", "result": [{"histogram": [1, {}]}]}}',
            "histogram",
        ),
        (200, '{"status": "success", "data": {"resultType": "vector", "result": [{"value": [1, 2]}]}}', "no number"),
        (200, '{"status": "success", "data": {"resultType": "vector", "result": [{"value": "x"}]}}', "no number"),
        (200, '{"status": "success", "data": {"resultType": "vector", "result": [7]}}', "no number"),
        (400, '{"status": "error", "errorType": "bad_data", "error": "1:5:\\n parse error"}', "1:5: parse error"),
        (503, '{"status": "error", "errorType": "unavailable", "error": "private"}', "the server answers 503"),
        (200, "[" * 50 + "]" * 50, "nested deeper"),
    ],
)
def test_other_answers_are_errors(status: int, body: str, says: str) -> None:
    with pytest.raises(MetricError) as caught:
        PROMETHEUS.read(status, body.encode())
    assert says in str(caught.value)
    assert "private" not in str(caught.value)
