"""When time alone will turn an answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal.promotion.api import Bundle
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import evaluate
from kardinal.promotion.policy.soak import Soak
from kardinal.promotion.policy.transition import next_transition
from tests.policy.soaks import soak_since
from tests.support import objects

NOW = datetime(2026, 3, 3, 14, 30, 15, tzinfo=UTC)
"""A Tuesday."""

BUNDLE = Bundle.model_validate(objects.bundle("app-1"))


def soaking(minutes: float | None) -> GateContext:
    soak = Soak(unknown="-") if minutes is None else soak_since(NOW - timedelta(minutes=minutes))
    return GateContext(BUNDLE, "prod", "auto", soak=soak)


def moment(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("!schedule.isWeekend", moment(7)),
        ("schedule.isWeekend", moment(7)),
        ('schedule.dayOfWeek == "Monday"', moment(9)),
        ("schedule.hour >= 17", moment(3, 17)),
        ("schedule.hour < 9", moment(4)),
        ("schedule.hour >= 9 && schedule.hour < 17", moment(3, 17)),
        ("schedule.isWeekend && schedule.hour >= 6", moment(7, 6)),
        ("schedule.hour >= 24", None),
        ("true", None),
        ('bundle.labels.x == "y"', None),
        ("broken(", None),
        ("metrics.x < 1", None),
    ],
)
def test_the_schedule_turns_an_answer_on_the_hour(expression: str, expected: datetime | None) -> None:
    assert next_transition(expression, soaking(None), now=NOW) == expected


@pytest.mark.parametrize(
    ("expression", "after"),
    [
        ("bundle.upstreamSoakMinutes >= 30", timedelta(minutes=18)),
        ("bundle.upstreamSoakMinutes > 30", timedelta(minutes=18, microseconds=1)),
        ("30 <= bundle.upstreamSoakMinutes", timedelta(minutes=18)),
        ("bundle.upstreamSoakMinutes >= 12.05", timedelta(seconds=3)),
        ("bundle.upstreamSoakMinutes >= 5 && bundle.upstreamSoakMinutes < 20", timedelta(minutes=8)),
        ("bundle.upstreamSoakMinutes >= 5", None),
    ],
)
def test_a_soak_turns_an_answer_when_it_reaches_its_threshold(expression: str, after: timedelta | None) -> None:
    expected = None if after is None else NOW + after
    assert next_transition(expression, soaking(12), now=NOW) == expected


def test_a_soak_that_is_not_running_turns_nothing() -> None:
    assert next_transition("bundle.upstreamSoakMinutes >= 30", soaking(None), now=NOW) is None


def test_the_later_of_two_conditions_decides() -> None:
    expression = "bundle.upstreamSoakMinutes >= 30 && schedule.hour >= 16"
    assert next_transition(expression, soaking(0), now=NOW) == moment(3, 16)
    assert next_transition(expression, soaking(-300), now=NOW) == NOW + timedelta(minutes=330)


def test_an_hour_that_comes_after_the_soak_and_more_than_a_day_from_now_is_found() -> None:
    expression = "schedule.hour < 3 && bundle.upstreamSoakMinutes >= 1440"
    assert next_transition(expression, soaking(0), now=NOW) == moment(5, 0)


def test_a_moment_that_is_written_down_turns_an_answer() -> None:
    expression = 'now() >= timestamp("2026-03-04T08:00:00Z")'
    assert next_transition(expression, soaking(None), now=NOW) == moment(4, 8)


def test_an_absurd_threshold_is_no_moment() -> None:
    assert next_transition("bundle.upstreamSoakMinutes >= 1e300", soaking(1), now=NOW) is None


condition = st.one_of(
    st.builds("schedule.hour {} {}".format, st.sampled_from(["<", ">=", "=="]), st.integers(0, 24)),
    st.builds("bundle.upstreamSoakMinutes {} {}".format, st.sampled_from(["<", ">="]), st.integers(0, 3000)),
    st.sampled_from(["schedule.isWeekend", "!schedule.isWeekend", 'schedule.dayOfWeek == "Thursday"']),
)


@settings(max_examples=40, deadline=None)
@given(
    terms=st.lists(condition, min_size=1, max_size=3),
    junction=st.sampled_from([" && ", " || "]),
    soaked=st.integers(0, 2000),
)
def test_the_answer_stays_until_the_moment_and_is_another_one_then(
    terms: list[str], junction: str, soaked: int
) -> None:
    expression = junction.join(terms)
    context = soaking(soaked)
    ready = evaluate(expression, context, now=NOW).ready
    turn = next_transition(expression, context, now=NOW)
    end = turn or NOW + timedelta(days=2)
    for step in range(1, 20):
        between = NOW + (end - NOW) * step / 20
        assert evaluate(expression, context, now=between).ready == ready
    if turn is not None:
        assert evaluate(expression, context, now=turn).ready != ready


def test_search_computes_the_data_of_the_bundle_once_for_all_moments() -> None:
    context = soaking(None)
    assert context.scope(NOW)["bundle"] is context.scope(moment(7))["bundle"]
    soaked = soaking(5)
    minutes = [soaked.scope(NOW + timedelta(minutes=each))["bundle"]["upstreamSoakMinutes"] for each in (0, 1)]
    assert minutes == [5, 6]
