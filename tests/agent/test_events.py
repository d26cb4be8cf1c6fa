"""Events and metrics follow from a transition of the status, and from nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.evidence import Evidence
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.api.promotion_step import PromotionStepStatus, PullRequestStatus, Retry
from kardinal.promotion.steps import builtin
from kardinal.promotion.steps.sequence import planned
from kardinal_agent.execution import status as statuses
from kardinal_agent.execution.events import PromotionEvent, Transition, events_of, figures_of
from kardinal_agent.metrics import Figure
from kardinal_agent.steps import PULL_REQUEST_OPENED, Announcement, Done
from kardinal_agent.steps.base import Wait, WaitKind

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)

STEP = PromotionStep.model_validate(
    {
        "metadata": {"name": "my-app-1-dev", "namespace": "team"},
        "spec": {
            "pipeline": "my-app",
            "environment": "dev",
            "bundleRef": "my-app-1",
            "path": "environments/dev",
            "git": {"url": "https://example.com/repo"},
            "approval": "pr-review",
            "health": {"timeout": "10m"},
        },
    }
)
BUNDLE = Bundle.model_validate(
    {"metadata": {"name": "my-app-1", "creationTimestamp": "2026-03-03T09:00:00Z"}, "spec": {"artifacts": {}}}
)
PROMOTING = PromotionStepStatus(state="Promoting", message="abc is on main", started_at=NOW)
PUSH, PROOF = planned([StepSpec(uses="git-push"), StepSpec(uses="health-check")], builtin.BUILTIN_STEPS)
CHECKING = statuses.entered(PROMOTING, PROOF, 0, now=NOW, timeout=timedelta(minutes=10))


def change(
    before: PromotionStepStatus, after: PromotionStepStatus, announcement: Announcement | None = None
) -> Transition:
    now = NOW + timedelta(seconds=30)
    return Transition(step=STEP, bundle=BUNDLE, before=before, after=after, now=now, announcement=announcement)


def events(transition: Transition) -> list[PromotionEvent]:
    return list(events_of(transition))


def figures(transition: Transition) -> list[Figure]:
    return list(figures_of(transition))


def ended(status: PromotionStepStatus, reason: str | None = None) -> PromotionStepStatus:
    """Return an end as it is written: with its condition Ready."""
    return statuses.ready(status, reason=reason, generation=1, now=NOW)


def failed(before: PromotionStepStatus, reason: str) -> Transition:
    return change(before, ended(statuses.failed(before, "it is over", now=NOW), reason))


def retrying(status: PromotionStepStatus) -> PromotionStepStatus:
    return statuses.retrying(status, "git-push: no answer", now=NOW, delay=timedelta(seconds=1))


def held(status: PromotionStepStatus, message: str = "held by a freeze") -> PromotionStepStatus:
    return statuses.held(status, message, now=NOW)


@pytest.mark.parametrize(
    "transition",
    [
        change(
            PromotionStepStatus(),
            statuses.paused(PromotionStepStatus(), Wait(WaitKind.START, "waits for its Bundle"), now=NOW),
        ),
        change(PROMOTING, CHECKING),
        change(CHECKING, statuses.waiting(CHECKING, "1 of 2 replicas are updated", now=NOW)),
        change(PROMOTING, statuses.succeeded(PROMOTING, PUSH, 0, Done("pushed"), now=NOW)),
        change(held(PROMOTING), statuses.released(held(PROMOTING), now=NOW)),
        change(held(PROMOTING), held(PROMOTING)),
    ],
    ids=["awaited", "entered", "progress", "succeeded", "released", "still held"],
)
def test_progress_is_no_event(transition: Transition) -> None:
    assert events(transition) == []
    assert figures(transition) == []


def test_a_hold_is_an_event_whenever_its_reason_is_another_one() -> None:
    assert events(change(PROMOTING, held(PROMOTING))) == [PromotionEvent("Normal", "Held", "held by a freeze")]
    other = held(held(PROMOTING), "held by gate soak")
    assert events(change(held(PROMOTING), other)) == [PromotionEvent("Normal", "Held", "held by gate soak")]


def test_a_step_that_goes_on_while_the_promotion_is_held_is_no_new_hold() -> None:
    waiting = statuses.waiting(held(CHECKING), "1 of 2 replicas are updated", now=NOW)
    assert events(change(held(CHECKING), waiting)) == []


def test_only_the_first_failed_attempt_is_an_event() -> None:
    first = retrying(PROMOTING)
    assert events(change(PROMOTING, first)) == [PromotionEvent("Warning", "Retrying", "git-push: no answer")]
    assert events(change(first, retrying(first))) == []
    assert events(change(first, statuses.waiting(first, "waits", now=NOW))) == []


def test_the_first_failed_attempt_of_a_later_step_is_another_event() -> None:
    before = PROMOTING.model_copy(update={"retry": Retry(attempts=4, last_error="x", next_at=NOW)})
    after = retrying(statuses.waiting(before, "waits", now=NOW))
    assert [event.reason for event in events(change(before, after))] == ["Retrying"]


def test_a_failure_is_an_event_with_its_reason() -> None:
    transition = failed(CHECKING, "HealthTimeout")
    assert events(transition) == [PromotionEvent("Warning", "HealthTimeout", "it is over")]
    assert figures(transition) == [
        Figure("failed", ("dev", "HealthTimeout")),
        Figure("health", ("dev", "failed"), 30.0),
    ]


def test_a_superseded_promotion_is_no_failure() -> None:
    transition = failed(PROMOTING, "Superseded")
    assert events(transition) == [PromotionEvent("Normal", "Superseded", "it is over")]
    assert figures(transition) == []


def test_a_verified_promotion_is_told_of_its_bundle_alone_and_counts_the_time_it_took() -> None:
    transition = change(CHECKING, ended(statuses.verified(CHECKING, "it runs", Evidence(), now=NOW)))
    assert events(transition) == []
    assert figures(transition) == [Figure("health", ("dev", "healthy"), 30.0), Figure("lead_time", ("dev",), 3630.0)]


def test_a_clock_that_is_behind_gives_no_negative_time() -> None:
    late = BUNDLE.model_copy(
        update={"metadata": BUNDLE.metadata.model_copy(update={"creation_timestamp": NOW + timedelta(hours=1)})}
    )
    after = ended(statuses.verified(CHECKING, "it runs", Evidence(), now=NOW))
    transition = Transition(step=STEP, bundle=late, before=CHECKING, after=after, now=NOW)
    assert [figure.seconds for figure in figures(transition)] == [0.0, 0.0]


def test_an_end_is_reported_once() -> None:
    end = failed(CHECKING, "HealthTimeout").after
    assert events(change(end, end)) == []
    assert figures(change(end, end)) == []


def opened(**update: Any) -> PromotionStepStatus:
    noted = PullRequestStatus(number=1, url="https://example.com/1", branch="b")
    return PROMOTING.model_copy(update={"pull_request": noted} | update)


def test_a_pull_request_is_counted_when_the_step_says_that_it_opened_one() -> None:
    announcement = Announcement(PULL_REQUEST_OPENED, "Opened https://example.com/1")
    transition = change(PROMOTING, opened(), announcement)
    assert events(transition) == [PromotionEvent("Normal", "PullRequestOpened", "Opened https://example.com/1")]
    assert figures(transition) == [Figure("opened", ("dev", "pr-review"))]


def test_a_pull_request_that_was_found_again_is_not_counted() -> None:
    transition = change(PROMOTING, opened())
    assert events(transition) == []
    assert figures(transition) == []


def test_a_merge_is_counted_once() -> None:
    merged = opened(merged_at=NOW)
    assert figures(change(opened(), merged)) == [Figure("merged", ("dev",))]
    assert figures(change(merged, merged)) == []
