"""The looks at what is Verified: what is written of it, and when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.policy.soak import healthy_time
from kardinal_agent.health import failed, healthy, progressing
from kardinal_agent.health.checks import CheckResult
from kardinal_agent.health.upkeep import Trouble, outlook

NOW = datetime(2026, 3, 3, 14, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

GOOD = CheckResult(healthy("runs it"))
ROLLOUT = CheckResult(progressing("2 of 3 replicas are available"))
UNAVAILABLE = CheckResult(progressing("it is not Available", negative=True))
BROKEN = CheckResult(failed("Degraded", "it is Degraded"))
UNSEEN = CheckResult(progressing("cluster eu is unreachable"), timedelta(seconds=30), unreadable=True)


@dataclass
class Environment:
    """A Verified environment that is looked at; its status is what was written last."""

    status: PromotionStepStatus
    now: datetime = NOW
    trouble: Trouble | None = None
    again: timedelta | None = None
    writes: int = 0

    def look(self, finding: CheckResult, *, after: timedelta = timedelta(), clock: timedelta = timedelta()) -> None:
        """Look after a while; `clock` is how far the time of day is set."""
        self.now += after
        found = outlook(
            self.status,
            finding,
            self.trouble,
            now=self.now + clock,
            monotonic=(self.now - NOW).total_seconds(),
            degraded_after=MINUTE,
        )
        self.writes += found.status != self.status
        self.status = found.status
        self.trouble = found.trouble
        self.again = found.again

    @property
    def degraded(self) -> tuple[str, str] | None:
        condition = self.status.condition("Degraded")
        return (condition.status, condition.reason) if condition is not None else None

    @property
    def minutes(self) -> float:
        time = healthy_time(self.status)
        assert time is not None
        return time.at(self.now).total_seconds() / 60


@pytest.fixture
def environment() -> Environment:
    status = {"state": "Verified", "verified_at": NOW, "healthy": True, "healthy_since": NOW}
    return Environment(PromotionStepStatus.model_validate(status, by_name=True))


@pytest.mark.parametrize(("finding", "reason"), [(UNAVAILABLE, "Unhealthy"), (BROKEN, "Degraded")])
def test_negative_for_the_grace_period_is_degraded(environment: Environment, finding: CheckResult, reason: str) -> None:
    environment.look(finding, after=10 * MINUTE)
    assert environment.again == MINUTE
    environment.look(finding, after=59 * SECOND)
    assert (environment.writes, environment.again) == (0, SECOND)
    environment.look(finding, after=SECOND)
    assert environment.status.healthy is False
    assert environment.degraded == ("True", reason)
    assert environment.minutes == 0
    assert environment.again is None


def test_degraded_ends_with_a_proof_and_the_soak_starts_anew(environment: Environment) -> None:
    environment.look(BROKEN, after=10 * MINUTE)
    environment.look(BROKEN, after=MINUTE)
    environment.look(ROLLOUT, after=MINUTE)
    environment.look(UNSEEN, after=MINUTE)
    environment.look(UNSEEN, after=MINUTE)
    assert (environment.degraded, environment.writes) == (("True", "Degraded"), 1)
    environment.look(GOOD, after=MINUTE)
    assert environment.status.healthy is True
    assert environment.degraded == ("False", "Healthy")
    environment.look(GOOD, after=4 * MINUTE)
    assert (environment.minutes, environment.writes) == (4, 2)


def test_unreachable_environment_pauses_the_soak(environment: Environment) -> None:
    environment.look(UNSEEN, after=10 * MINUTE)
    assert environment.again == timedelta(seconds=30)
    environment.look(UNSEEN, after=MINUTE)
    assert environment.status.healthy is False
    assert environment.degraded == ("Unknown", "CannotBeSeen")
    environment.look(UNSEEN, after=60 * MINUTE)
    assert (environment.minutes, environment.writes) == (10, 1)
    environment.look(ROLLOUT, after=MINUTE)
    environment.look(GOOD, after=5 * MINUTE)
    assert environment.status.healthy is True
    assert (environment.minutes, environment.writes) == (15, 2)
    environment.look(UNSEEN, after=5 * MINUTE)
    environment.look(UNSEEN, after=MINUTE)
    assert environment.minutes == 20


def test_unreachable_environment_may_turn_out_degraded(environment: Environment) -> None:
    environment.look(UNSEEN, after=10 * MINUTE)
    environment.look(UNSEEN, after=MINUTE)
    environment.look(BROKEN, after=MINUTE)
    assert environment.status.healthy is False
    environment.look(BROKEN, after=MINUTE)
    assert environment.degraded == ("True", "Degraded")
    environment.look(GOOD, after=MINUTE)
    assert environment.minutes == 0


@pytest.mark.parametrize("between", [GOOD, ROLLOUT, UNSEEN])
def test_a_trouble_that_is_interrupted_begins_anew(environment: Environment, between: CheckResult) -> None:
    for _ in range(5):
        environment.look(BROKEN, after=SECOND)
        environment.look(BROKEN, after=50 * SECOND)
        environment.look(between, after=SECOND)
    assert environment.writes == 0


def test_a_clock_that_is_set_degrades_nothing(environment: Environment) -> None:
    environment.look(BROKEN, after=MINUTE)
    environment.look(BROKEN, after=SECOND, clock=timedelta(days=1))
    environment.look(GOOD, after=SECOND, clock=timedelta(days=-1))
    assert environment.writes == 0


@given(st.lists(st.tuples(st.sampled_from([GOOD, ROLLOUT]), st.integers(0, 10_000)), max_size=20))
def test_healthy_environment_writes_nothing(looks: list[tuple[CheckResult, int]]) -> None:
    found = Environment(PromotionStepStatus(state="Verified", verified_at=NOW, healthy=True, healthy_since=NOW))
    for finding, seconds in looks:
        found.look(finding, after=timedelta(seconds=seconds))
    assert (found.writes, found.again) == (0, None)


@given(
    st.lists(st.tuples(st.sampled_from([GOOD, ROLLOUT, BROKEN, UNAVAILABLE, UNSEEN]), st.integers(0, 120)), max_size=40)
)
def test_no_sequence_of_looks_counts_time_in_which_something_was_wrong(looks: list[tuple[CheckResult, int]]) -> None:
    found = Environment(PromotionStepStatus(state="Verified", verified_at=NOW, healthy=True, healthy_since=NOW))
    for finding, seconds in looks:
        found.look(finding, after=timedelta(seconds=seconds))
        assert found.minutes <= (found.now - NOW).total_seconds() / 60
        if found.status.healthy is False:
            before = found.minutes
            assert found.status.healthy_since is None
            assert found.minutes == before
        if found.degraded is not None and found.degraded[0] == "True":
            assert found.minutes == 0
