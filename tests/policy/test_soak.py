"""The soak: which time counts, and when it is reached."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.promotion.api.bundle import EnvironmentStatus
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.policy.soak import HealthyTime, Soak, healthy_time, upstream_soak

NOW = datetime(2026, 3, 3, 14, 30, tzinfo=UTC)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def since(minutes: float, **fields: Any) -> HealthyTime:
    return HealthyTime(since=ago(minutes), **fields)


@pytest.mark.parametrize(
    ("upstreams", "words"),
    [
        ({}, "prod has no upstream"),
        ({"staging": None}, "staging is not Verified"),
        ({"eu": None, "us": None}, "eu and us are not Verified"),
        ({"eu": since(5), "us": None}, "us is not Verified"),
    ],
)
def test_without_a_verified_upstream_there_is_no_soak(upstreams: dict[str, HealthyTime | None], words: str) -> None:
    assert upstream_soak("prod", upstreams) == Soak(unknown=words)
    assert not upstream_soak("prod", upstreams).is_known


@pytest.mark.parametrize(
    ("times", "minutes"),
    [
        ([since(40), since(30)], 30),
        ([since(10, before=timedelta(minutes=25)), since(40)], 35),
        ([HealthyTime(before=timedelta(minutes=7)), since(40)], 7),
        ([HealthyTime()], 0),
        ([since(40, until=ago(20)), since(30)], 20),
        ([since(40, until=ago(20)), since(5)], 5),
        ([since(-5)], 0),
    ],
    ids=["least", "resumed", "paused", "degraded", "replaced", "replaced-longer", "clock-ahead"],
)
def test_the_soak_is_the_least_of_all_upstreams(times: list[HealthyTime], minutes: float) -> None:
    upstreams = {f"u{index}": time for index, time in enumerate(times)}
    assert upstream_soak("prod", upstreams).minutes(NOW) == minutes


def test_paused_or_replaced_soak_keeps_its_value() -> None:
    soak = Soak(times=(HealthyTime(before=timedelta(minutes=7)), since(40, until=ago(20))))
    assert soak.minutes(NOW) == soak.minutes(NOW + timedelta(days=4)) == 7


@pytest.mark.parametrize(
    "time",
    [since(600), since(1, before=timedelta(hours=9)), HealthyTime(before=timedelta(hours=9))],
    ids=["clock-behind", "forged-before", "forged-pause"],
)
def test_no_more_time_counts_than_the_step_has_existed(time: HealthyTime) -> None:
    bounded = HealthyTime(since=time.since, before=time.before, created=ago(12))
    assert bounded.at(NOW) == timedelta(minutes=12)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([since(10)], ago(-20)),
        ([since(10), since(25)], ago(-20)),
        ([since(10, before=timedelta(minutes=15))], ago(-5)),
        ([since(600, created=ago(12))], ago(-18)),
        ([HealthyTime(before=timedelta(minutes=7))], None),
    ],
)
def test_the_moment_is_known_at_which_a_soak_is_long_enough(
    times: list[HealthyTime], expected: datetime | None
) -> None:
    soak = Soak(times=times)
    assert soak.reaches(30) == expected
    if expected is not None:
        assert soak.minutes(expected) == 30
        assert soak.minutes(expected - timedelta(seconds=1)) < 30


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"state": "HealthChecking"}, None),
        ({"state": "Verified"}, None),
        ({"state": "Failed", "healthy": True, "healthy_since": ago(9)}, None),
        ({"state": "Verified", "verified_at": ago(9), "healthy": True, "healthy_since": ago(4)}, since(4)),
        ({"state": "Verified", "verified_at": ago(9), "healthy": False}, HealthyTime()),
        (
            {"state": "Verified", "verified_at": ago(9), "healthy": False, "healthy_for": timedelta(minutes=3)},
            HealthyTime(before=timedelta(minutes=3)),
        ),
    ],
    ids=["early", "no-time", "failed", "healthy", "degraded", "unseen"],
)
@pytest.mark.parametrize("model", [PromotionStepStatus, EnvironmentStatus])
def test_a_status_says_since_when_it_is_healthy(
    model: type[PromotionStepStatus | EnvironmentStatus], status: dict[str, Any], expected: HealthyTime | None
) -> None:
    assert healthy_time(model.model_validate(status, by_name=True)) == expected
