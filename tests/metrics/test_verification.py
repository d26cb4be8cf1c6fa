"""The state of the checks of a promotion: what fails it, and what it waits for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.promotion.api import MetricCheck
from kardinal.promotion.metrics.verification import Verification, verification
from tests.metrics.serving import check

SINCE = datetime(2026, 3, 3, 12, tzinfo=UTC)


def checked(*results: dict[str, Any], ready: str = "True", limit: int = 1) -> MetricCheck:
    known = {"namespace": "team", "bundle": "app-1", "environment": "prod"}
    condition = {"type": "Ready", "status": ready, "reason": "X", "message": "not listed", "lastTransitionTime": SINCE}
    status = {"conditions": [condition], "results": [{**known, **result} for result in results]}
    stored = check("https://prometheus.example.com", namespace="team", failureLimit=limit)
    return MetricCheck.model_validate({**stored, "status": status})


def result(status: str, *, since: float = 0, at: float = 0, **fields: Any) -> dict[str, Any]:
    """Return a result that has lasted from `since` to `at`, in minutes after the environment became healthy."""
    times = {"since": SINCE + timedelta(minutes=since), "at": SINCE + timedelta(minutes=at)}
    return {"status": status, **times, **fields}


def asked(*checks: MetricCheck | None, since: datetime | None = SINCE) -> Verification:
    named = {f"check-{number}": each for number, each in enumerate(checks)}
    return verification(named, bundle="app-1", environment="prod", since=since, lasting=timedelta(minutes=5))


PASSED = result("Success", at=5, value=1)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (PASSED, "passed"),
        (result("Success", at=4.9), "waiting"),
        (result("Success", since=1, at=5.9), "waiting"),
        (result("Success", since=-1, at=5), "waiting"),
        (result("Failure", since=-1, at=5, failures=1), "waiting"),
        (result("Failure", at=1, failures=1), "failed"),
        (result("Unknown", at=9), "waiting"),
        (result("NoData", at=9), "waiting"),
        (result("Error", at=9, failures=1), "waiting"),
        ({**PASSED, "bundle": "app-2"}, "waiting"),
        ({**PASSED, "environment": "staging"}, "waiting"),
        ({**PASSED, "namespace": "other"}, "waiting"),
    ],
)
def test_state_of_one_check(found: dict[str, Any], state: str) -> None:
    assert asked(checked(found)).state == state


def test_failures_count_from_the_limit_on() -> None:
    assert asked(checked(result("Failure", failures=2), limit=3)).state == "waiting"
    assert asked(checked(result("Failure", failures=3), limit=3)).state == "failed"


def test_all_checks_must_pass_and_one_failure_fails() -> None:
    failing = checked(result("Failure", failures=1, value=0.5))
    waiting = checked(result("NoData"))
    assert asked(checked(PASSED), checked(PASSED)).state == "passed"
    assert asked(checked(PASSED), waiting).state == "waiting"
    assert asked(waiting, failing, checked(PASSED)) == Verification(
        "failed", "metric check-1 fails: the value is 0.5", {"check-1": 0.5, "check-2": 1.0}
    )


def test_nothing_passes_before_the_environment_is_healthy() -> None:
    assert asked(checked(PASSED), since=None).state == "waiting"


def test_reason_of_a_wait_names_the_check() -> None:
    found = asked(None, checked(PASSED, ready="False"), checked())
    assert found.state == "waiting"
    assert found.message.split("; ") == [
        "waits for MetricCheck check-0, which does not exist",
        "waits for metric check-1: not listed",
        "waits for the first result of metric check-2",
    ]
