"""Durations, names and conditions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.objects.duration import DurationError, format_duration, parse_duration, read_duration
from kardinal.objects.naming import short_hash
from kardinal.promotion.api import names as naming
from kardinal.promotion.api import set_condition

NOON = datetime(2026, 4, 7, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("1h30m", 5400), ("1.5h", 5400), ("250ms", 0.25), ("0s", 0)]
)
def test_a_duration_is_read_as_go_writes_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5 m", "1d", "5m ", "9999999999h"])
def test_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**12))
def test_a_written_duration_reads_back(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert read_duration(format_duration(duration)) == duration


@given(st.from_regex(r"[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?", fullmatch=True), st.sampled_from(["dev", "prod-eu"]))
def test_generated_names_fit_a_label_and_stay_apart(bundle: str, environment: str) -> None:
    name = naming.step_name(bundle, environment)
    assert len(name) <= 63
    assert not name.endswith("-")
    assert name != naming.step_name(f"{bundle}x", environment)


def test_a_long_name_is_cut_and_closed_with_a_hash() -> None:
    name = naming.step_name("b" * 70, "prod")
    assert len(name) == 63
    assert name.endswith(short_hash("b" * 70 + "-prod"))


def test_node_ids_are_camel_case_and_carry_no_bundle() -> None:
    ids = naming.node_ids(["dev", "prod-us-east"], [("platform", "no-weekend-deploys", "prod-us-east")])
    assert ids["dev",] == "dev"
    assert ids["prod-us-east",] == "prodUsEast"
    assert ids["platform", "no-weekend-deploys", "prod-us-east"] == "noWeekendDeploys0prodUsEast"


@pytest.mark.parametrize("name", ["true", "bundle", "freeze", "1st", "e" * 64])
def test_a_node_id_that_cannot_be_used_gets_a_hash(name: str) -> None:
    (identifier,) = naming.node_ids([name], []).values()
    assert identifier.endswith("0" + short_hash(name))
    assert identifier.isalnum()
    assert not identifier[0].isdigit()
    assert len(identifier) <= 63


def test_node_ids_that_differ_by_case_alone_are_kept_apart() -> None:
    ids = naming.node_ids(["ab", "a-b"], [])
    assert len({identifier.lower() for identifier in ids.values()}) == 2


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = set_condition((), "Ready", "False", reason="Promoting", now=NOON)
    second = set_condition(first, "Ready", "False", reason="Waiting", now=NOON + timedelta(minutes=1))
    third = set_condition(second, "Ready", "True", reason="Verified", now=NOON + timedelta(minutes=2))
    assert [conditions[0].last_transition_time for conditions in (first, second, third)] == [
        NOON,
        NOON,
        NOON + timedelta(minutes=2),
    ]
    assert second[0].reason == "Waiting"


def test_a_condition_message_is_bounded() -> None:
    (condition,) = set_condition((), "Ready", "False", reason="Long", message="x" * 5000, now=NOON)
    assert len(condition.message) == 1024
