"""The schedule in a time zone, windows of the week and holidays: what holds, and when that changes."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal import cel
from kardinal.cel.windows import parse_window
from kardinal.promotion.api import Bundle
from kardinal.promotion.policy.calendar import Calendar, parse_holidays
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import evaluate, fault
from kardinal.promotion.policy.transition import next_transition
from tests.support import objects

BUNDLE = Bundle.model_validate(objects.bundle("app-1"))
ZONES = ["UTC", "Europe/Zurich", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"]


def context(calendar: Calendar) -> GateContext:
    return GateContext(BUNDLE, "prod", "auto", calendar=calendar)


def at(text: str, zone: str = "UTC", fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)


@pytest.mark.parametrize(
    ("text", "holding", "not_holding"),
    [
        ("Mon-Fri 09:00-16:00", [(0, "09:00"), (4, "15:59")], [(0, "08:59"), (4, "16:00"), (5, "10:00")]),
        ("Sat-Mon", [(5, "00:00"), (0, "23:59")], [(1, "00:00"), (4, "23:59")]),
        ("Mon,Wed-Thu 00:00-24:00", [(0, "00:00"), (2, "23:59"), (3, "12:00")], [(1, "12:00"), (4, "00:00")]),
        ("Fri 22:00-06:00", [(4, "22:00"), (5, "05:59")], [(4, "05:00"), (5, "06:00"), (5, "22:30")]),
        ("22:00-06:00", [(0, "00:00"), (6, "23:00")], [(3, "06:00"), (3, "21:59")]),
        ("Sun 23:00-01:00", [(6, "23:30"), (0, "00:30")], [(0, "23:30"), (6, "00:30")]),
    ],
)
def test_window_has_its_start_and_not_its_end(
    text: str, holding: list[tuple[int, str]], not_holding: list[tuple[int, str]]
) -> None:
    window = parse_window(text)
    for expected, moments in ((True, holding), (False, not_holding)):
        for day, clock in moments:
            hour, minute = map(int, clock.split(":"))
            assert window.holds(day, hour * 60 + minute) is expected, (day, clock)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "Mo", "mon", "Mon-", "-Fri", "Mon,,Tue", "Mon 9:00-16:00", "Mon 09:00", "Mon 09:00-09:00"),
        *("25:00-26:00", "Mon 24:00-01:00", "09:60-10:00", "09:00-24:01", "Mon 09:00-10:00 Tue", "09:00-10:00 Mon"),
        "Mon" + " " * 99,
    ],
)
def test_malformed_window_is_a_fault_of_the_expression(text: str) -> None:
    assert "inWindow() takes days and a time" in (fault(f'schedule.inWindow("{text}")') or "")


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("schedule.inWindow(bundle.labels.window)", "asked with a literal"),
        ('bundle.labels.inWindow("Mon")', "asked with a literal"),
        ("schedule.size() == 1", "read by its attributes"),
        ('schedule["is" + "Holiday"]', "read by its attributes"),
        ("[1].map(schedule, schedule + 1) == [2]", None),
        ('[1].exists(x, schedule.inWindow("Mon") && schedule.hour == x)', None),
    ],
)
def test_moments_of_an_expression_are_known_from_its_text(expression: str, wrong: str | None) -> None:
    found = fault(expression)
    assert found is None if wrong is None else wrong in (found or "")


WORK = 'schedule.inWindow("Mon-Fri 09:00-16:00")'
ZURICH = context(Calendar("Europe/Zurich"))


@pytest.mark.parametrize(
    ("expression", "now", "turn"),
    [
        (WORK, at("2026-03-03T08:59:59", "Europe/Zurich"), at("2026-03-03T09:00", "Europe/Zurich")),
        (WORK, at("2026-03-06T16:00", "Europe/Zurich"), at("2026-03-09T09:00", "Europe/Zurich")),
        # The clocks are put forward at 2026-03-29 02:00, back at 2026-10-25 03:00.
        (WORK, at("2026-03-27T17:00", "Europe/Zurich"), datetime(2026, 3, 30, 7, tzinfo=UTC)),
        (WORK, at("2026-10-23T17:00", "Europe/Zurich"), datetime(2026, 10, 26, 8, tzinfo=UTC)),
        ("schedule.hour >= 2", at("2026-03-29T01:30", "Europe/Zurich"), datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("schedule.hour == 2", at("2026-10-25T02:30", "Europe/Zurich"), datetime(2026, 10, 25, 2, tzinfo=UTC)),
        # 02:30 comes twice: the window closes when the clocks go back, and opens again.
        (
            'schedule.inWindow("Sun 02:30-04:00")',
            at("2026-10-25T02:45", "Europe/Zurich"),
            datetime(2026, 10, 25, 1, tzinfo=UTC),
        ),
        (
            'schedule.inWindow("Sun 02:30-04:00")',
            at("2026-10-25T02:10", "Europe/Zurich", fold=1),
            datetime(2026, 10, 25, 1, 30, tzinfo=UTC),
        ),
        # 02:30 does not come: the window opens when the clocks go forward.
        (
            'schedule.inWindow("Sun 02:30-04:00")',
            at("2026-03-29T01:50", "Europe/Zurich"),
            datetime(2026, 3, 29, 1, tzinfo=UTC),
        ),
        ("schedule.isWeekend", at("2026-03-06T23:59", "Europe/Zurich"), at("2026-03-07T00:00", "Europe/Zurich")),
    ],
)
def test_window_turns_by_the_clock_on_the_wall(expression: str, now: datetime, turn: datetime) -> None:
    assert next_transition(expression, ZURICH, now=now) == turn


condition = st.one_of(
    st.builds("schedule.hour {} {}".format, st.sampled_from(["<", ">=", "=="]), st.integers(0, 24)),
    st.sampled_from(
        ["schedule.isWeekend", 'schedule.dayOfWeek == "Sunday"', "schedule.isHoliday", "!schedule.isHoliday"]
    ),
    st.builds(
        'schedule.inWindow("{} {:02d}:{:02d}-{:02d}:{:02d}")'.format,
        st.sampled_from(["Mon-Fri", "Sat,Sun", "Sun", "Fri-Mon"]),
        st.integers(0, 11),
        st.sampled_from([0, 15, 30]),
        st.integers(12, 23),
        st.sampled_from([0, 45]),
    ),
)
moments = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(lambda each: each.replace(tzinfo=UTC))
changes_of_clocks = st.builds(
    lambda around, minutes: around + timedelta(minutes=minutes),
    st.sampled_from([datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)]),
    st.integers(-300, 300),
)


@settings(max_examples=60, deadline=None)
@given(
    terms=st.lists(condition, min_size=1, max_size=3),
    junction=st.sampled_from([" && ", " || "]),
    now=st.one_of(moments, changes_of_clocks),
    zone=st.sampled_from(ZONES),
    holiday=st.integers(-1, 5),
)
def test_answer_stays_until_its_moment_in_every_zone(
    terms: list[str], junction: str, now: datetime, zone: str, holiday: int
) -> None:
    expression = junction.join(terms)
    days = frozenset({(now + timedelta(days=holiday)).date()})
    seen = context(Calendar(zone, days))
    ready = evaluate(expression, seen, now=now).ready
    turn = next_transition(expression, seen, now=now)
    end = turn or now + timedelta(days=7)
    minutes = int((end - now) / timedelta(minutes=1))
    for step in range(0, minutes, max(1, minutes // 200)):
        between = now + timedelta(minutes=step)
        assert evaluate(expression, seen, now=between).ready == ready, between
    if turn is not None:
        assert evaluate(expression, seen, now=turn).ready != ready
        assert evaluate(expression, seen, now=turn - timedelta(microseconds=1)).ready == ready


def test_reason_says_whether_the_window_is_open() -> None:
    answer = evaluate(f"{WORK} && schedule.hour < 12", ZURICH, now=at("2026-03-03T10:00", "Europe/Zurich"))
    assert (answer.ready, answer.reason) == (True, f"schedule.hour = 10 (threshold: < 12), {WORK} = true")


@pytest.mark.parametrize("expression", ["schedule.isHoliday", "!schedule.isHoliday", "true || schedule.isHoliday"])
@pytest.mark.parametrize(
    ("calendar", "reason"),
    [
        (Calendar(), "schedule.isHoliday needs spec.holidays"),
        (Calendar(holidays_problem="ConfigMap p/h does not exist"), "ConfigMap p/h does not exist"),
        (Calendar("Europe/Zuerich", frozenset()), "there is no time zone Europe/Zuerich; did you mean Europe/Zurich?"),
    ],
)
def test_calendar_that_is_not_known_closes_a_gate_whatever_it_asks(
    expression: str, calendar: Calendar, reason: str
) -> None:
    answer = evaluate(expression, context(calendar), now=datetime(2026, 3, 3, tzinfo=UTC))
    assert (answer.ready, answer.result) == (False, "error")
    assert reason in answer.reason


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2026-12-25\n2026-12-26\r\n\n", frozenset({date(2026, 12, 25), date(2026, 12, 26)})),
        ("", frozenset()),
        ("2026-12-25\n25.12.2026", "line 2 is no date such as 2026-12-25"),
        ("2026-02-30", "line 1 is no date such as 2026-12-25"),
        ("20261225", "line 1 is no date such as 2026-12-25"),
        ("2026-12-25\n" * 2000, "it has more than 2,000 lines"),
    ],
)
def test_holidays_are_dates_one_in_each_line(text: str, found: frozenset[date] | str) -> None:
    assert parse_holidays(text) == found


def test_holiday_is_one_from_midnight_to_midnight_of_its_place() -> None:
    seen = context(Calendar("Pacific/Auckland", frozenset({date(2026, 12, 25)})))
    assert next_transition("schedule.isHoliday", seen, now=at("2026-06-01T00:00")) == at(
        "2026-12-25T00:00", "Pacific/Auckland"
    )
    assert next_transition("schedule.isHoliday", seen, now=at("2026-12-25T12:00", "Pacific/Auckland")) == at(
        "2026-12-26T00:00", "Pacific/Auckland"
    )


def test_window_of_something_else_than_a_schedule_has_no_value() -> None:
    outcome = cel.compile('x.inWindow("Mon")').evaluate({"x": {"dayOfWeek": "x"}}, now=datetime.now(UTC))
    assert isinstance(outcome, cel.Failed)
