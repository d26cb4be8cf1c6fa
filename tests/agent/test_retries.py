"""A failure is followed by another attempt, the next step, or the end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.git.errors import AuthenticationFailed
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.api.promotion_step import PromotionStepStatus, Retry
from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.sequence import planned
from kardinal.runtime import Backoff
from kardinal.scm.errors import AccessDenied, HostUnavailable, RateLimited, RequestRefused, UnknownAnswer
from kardinal_agent.errors import Failure, classified
from kardinal_agent.execution.retries import Again, GiveUp, PassOver, RetryPolicy, after_failure, timed_out

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
POLICY = RetryPolicy(name="git-push", backoff=Backoff(base=1.0, cap=300.0))
PASSING = Failure("Timeout", "no answer in time", transient=True)
FINAL = replace(PASSING, transient=False)
BLOCKED = Failure("SecretNotFound", "there is no Secret", transient=True, blocked=True)


def after(*, attempts: int = 0, limited: int | None = None) -> PromotionStepStatus:
    """Return a status after a number of failed attempts in a row."""
    retry = Retry(attempts=attempts, limited=limited, last_error="no answer", next_at=NOW) if attempts else None
    return PromotionStepStatus(state="Promoting", retry=retry)


def follows(
    status: PromotionStepStatus, failure: Failure, *, now: datetime = NOW, **fields: Any
) -> Again | PassOver | GiveUp:
    return after_failure(status, failure, replace(POLICY, **fields), now=now)


def test_a_passing_failure_is_repeated_later_and_later() -> None:
    delays = []
    for attempts in (0, 1, 2, 100):
        found = follows(after(attempts=attempts), PASSING)
        assert isinstance(found, Again)
        retry = found.status.retry
        assert retry == Retry(
            attempts=attempts + 1, last_error="git-push: no answer in time", next_at=NOW + found.delay
        )
        assert found.status.message == "will be tried again: git-push: no answer in time"
        delays.append(found.delay)
    assert delays == sorted(delays)
    assert delays[-1] == timedelta(minutes=5)


def test_a_host_that_names_a_time_is_given_it() -> None:
    found = follows(after(), replace(PASSING, retry_after=90.0))
    assert isinstance(found, Again)
    assert found.delay == timedelta(seconds=90)


def test_the_last_attempt_is_at_the_deadline() -> None:
    found = follows(after(attempts=100), PASSING, deadline=NOW + timedelta(seconds=7))
    assert isinstance(found, Again)
    assert found.delay == timedelta(seconds=7)
    late = follows(after(attempts=100), PASSING, deadline=NOW - timedelta(seconds=7))
    assert isinstance(late, Again)
    assert late.delay == timedelta()


def test_a_final_failure_ends_the_promotion_unless_the_step_is_optional() -> None:
    assert follows(after(), FINAL) == GiveUp("Timeout", "git-push: no answer in time")
    assert follows(after(), FINAL, optional=True) == PassOver("no answer in time")
    assert isinstance(follows(after(), PASSING, optional=True), Again)


@pytest.mark.parametrize("optional", [False, True])
def test_a_step_is_repeated_as_often_as_it_says(*, optional: bool) -> None:
    assert isinstance(follows(after(attempts=1), PASSING, attempts=3, optional=optional), Again)
    message = "no answer in time (attempt 3 of 3)"
    end = follows(after(attempts=2), PASSING, attempts=3, optional=optional)
    assert end == (PassOver(message) if optional else GiveUp("Timeout", f"git-push: {message}"))


def test_blocked_attempt_is_shown_and_not_counted() -> None:
    found = follows(after(attempts=50), BLOCKED, attempts=3)
    assert isinstance(found, Again)
    condition = found.status.condition("Held")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "Blocked")
    assert found.status.message == "will be tried again: git-push: there is no Secret"


def test_a_failure_that_is_worth_a_few_attempts_ends_after_them() -> None:
    few = replace(PASSING, attempts=3)
    first = follows(after(), few)
    assert isinstance(first, Again)
    assert first.status.retry is not None
    assert first.status.retry.limited == 1
    assert isinstance(follows(after(attempts=9, limited=1), few), Again)
    assert isinstance(follows(after(attempts=9, limited=2), few, optional=True), GiveUp)


def test_a_step_that_is_not_done_at_its_deadline_has_failed() -> None:
    limited, unlimited = planned(
        [StepSpec.model_validate({"uses": "git-push", "timeout": "5m"}), StepSpec(uses="git-push")], BUILTIN_STEPS
    )
    found = timed_out(limited, "waits", deadline=NOW, now=NOW)
    assert found == Failure("StepTimeout", "not done within 5m: waits", transient=False)
    assert timed_out(limited, "waits", deadline=NOW + timedelta(seconds=1), now=NOW) is None
    assert timed_out(limited, "waits", deadline=None, now=NOW) is None
    assert timed_out(unlimited, "waits", deadline=NOW, now=NOW) is None


@pytest.mark.parametrize(
    ("error", "ends_after", "held"),
    [
        (HostUnavailable("it answered 502"), None, False),
        (RateLimited("it answered 429"), None, False),
        (AccessDenied("it answered 403"), None, True),
        (AuthenticationFailed("the host refuses the credentials"), None, True),
        (UnknownAnswer("it answered 418"), 3, False),
        (RequestRefused("it answered 422"), 1, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_class_of_answers_of_a_host(error: Exception, ends_after: int | None, *, held: bool) -> None:
    status = after()
    met = 0
    while met < 50 and isinstance(found := follows(status, classified(error)), Again):
        met += 1
        status = found.status
    assert met == (50 if ends_after is None else ends_after - 1)
    assert (status.condition("Held") is not None) == held
