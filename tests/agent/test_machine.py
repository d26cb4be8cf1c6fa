"""The decision: from what is known to the one thing to do next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.api.promotion_step import PromotionStepSpec, PromotionStepStatus, Retry, StepProgress
from kardinal.steps.sequence import default_sequence
from kardinal_agent.execution.machine import (
    Abandon,
    Action,
    Await,
    Delay,
    Fail,
    Hold,
    Rest,
    Run,
    Verify,
    View,
    decide,
)

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
PUSHED = ["git-clone", "kustomize-set-image", "git-commit", "git-push"]

AUTO = default_sequence(approval="auto", pr=False, strategy="kustomize")
REVIEWED = default_sequence(approval="pr-review", pr=False, strategy="kustomize")


def spec(**fields: Any) -> PromotionStepSpec:
    return PromotionStepSpec.model_validate(
        {
            "pipeline": "my-app",
            "environment": "prod",
            "bundleRef": "my-app-1",
            "path": "environments/prod",
            "git": {"url": "https://example.com/repo"},
        }
        | fields
    )


def at(*done: str, running: str | None = None, **fields: Any) -> PromotionStepStatus:
    """The status of a promotion that has done some steps and is at another one."""
    steps = [StepProgress(uses=uses, state="Succeeded") for uses in done]
    if running:
        steps.append(StepProgress(uses=running, state="Running"))
    values: dict[str, Any] = {"state": "Promoting", "started_at": NOW, "steps": tuple(steps)}
    return PromotionStepStatus(**values | fields)


def view(status: PromotionStepStatus | None = None, **fields: Any) -> View:
    values: dict[str, Any] = {
        "spec": spec(),
        "status": status or PromotionStepStatus(),
        "sequence": AUTO,
        "now": NOW,
    }
    return View(**values | fields)


@pytest.mark.parametrize(
    ("seen", "action"),
    [
        pytest.param(view(), Run(0, outside=False), id="a new order begins"),
        pytest.param(view(at(*PUSHED[:3])), Run(3, outside=True), id="a push is noted before"),
        pytest.param(view(at(*PUSHED[:3], running="git-push")), Run(3, outside=True), id="a push is taken up again"),
        pytest.param(view(at(*PUSHED)), Run(4, outside=False), id="what has landed is proven"),
        pytest.param(view(at(*PUSHED, running="health-check"), proven=True), Verify(), id="what is proven is verified"),
        pytest.param(view(at(state="Verified")), Rest(), id="verified stays verified"),
        pytest.param(view(at(state="Failed"), superseded=True), Rest(), id="failed stays failed"),
        pytest.param(view(mine=False), Rest(), id="others' orders are left alone"),
        pytest.param(view(at(*PUSHED, "open-pr"), sequence=REVIEWED), Run(5, outside=True), id="a merge is waited for"),
        pytest.param(view(at(*PUSHED[:3]), holds=["frozen", "red"]), Hold("frozen; red"), id="a push is held"),
        pytest.param(view(holds=["frozen"]), Run(0, outside=False), id="what stays inside is not held"),
        pytest.param(
            view(at(*PUSHED, running="health-check"), holds=["frozen"]),
            Run(4, outside=False),
            id="looking is not held",
        ),
        pytest.param(
            view(at(*PUSHED, running="health-check"), holds=["frozen"], proven=True),
            Hold("frozen"),
            id="the verdict is held",
        ),
        pytest.param(
            view(at(*PUSHED[:3], running="git-push"), superseded=True), Abandon(), id="an effect is taken back"
        ),
        pytest.param(
            view(at(*PUSHED, running="health-check"), superseded=True),
            Run(4, outside=False),
            id="what has landed is seen through though superseded",
        ),
        pytest.param(
            view(at(*PUSHED, "open-pr", running="wait-for-merge"), sequence=REVIEWED, superseded=True),
            Abandon(),
            id="a proposal is taken back",
        ),
        pytest.param(view(refusal="wrong"), Fail("InvalidSpec", "wrong"), id="what cannot be executed is refused"),
        pytest.param(
            view(spec=spec(upstreamVerified="Verified, Verified")), Run(0, outside=False), id="upstreams are verified"
        ),
    ],
)
def test_the_next_action(seen: View, action: Action) -> None:
    assert decide(seen) == action


def test_nothing_begins_before_every_upstream_is_verified() -> None:
    for upstream in ("Promoting", "Verified,HealthChecking", "Verified,", "Failed"):
        assert isinstance(decide(view(spec=spec(upstreamVerified=upstream))), Await)


def test_a_promotion_under_way_does_not_ask_for_its_upstream_again() -> None:
    assert isinstance(decide(view(at(*PUSHED[:3]), spec=spec(upstreamVerified="Failed"))), Run)


def test_what_is_superseded_before_any_effect_ends_without_asking_anybody() -> None:
    waiting = Retry(attempts=3, last_error="x", next_at=NOW + timedelta(minutes=5))
    for status in (PromotionStepStatus(), at(*PUSHED[:3]), at(retry=waiting)):
        action = decide(view(status, superseded=True))
        assert isinstance(action, Fail)
        assert action.reason == "Superseded"


def test_a_failed_attempt_waits_for_its_time_whatever_wakes_it() -> None:
    later = NOW + timedelta(minutes=5)
    status = at(*PUSHED[:3], running="git-push", retry=Retry(attempts=3, last_error="x", next_at=later))
    assert decide(view(status)) == Delay(later)
    assert decide(view(status, superseded=True)) == Delay(later)
    assert decide(view(status, now=later)) == Run(3, outside=True)


@given(
    done=st.integers(0, 7),
    running=st.booleans(),
    sequence=st.sampled_from([AUTO, REVIEWED]),
    holds=st.sampled_from([[], ["frozen"]]),
    superseded=st.booleans(),
    proven=st.booleans(),
)
def test_nothing_leaves_the_process_while_something_holds(
    *, done: int, running: bool, sequence: Any, holds: list[str], superseded: bool, proven: bool
) -> None:
    names = [step.uses for step in sequence]
    done = min(done, len(names) - 1)
    status = at(*names[:done], running=names[done] if running else None)
    action = decide(
        view(
            status,
            sequence=sequence,
            holds=holds,
            superseded=superseded,
            proven=proven and names[done] == "health-check",
        )
    )
    if isinstance(action, Run):
        assert action.index == done
        assert not (holds and names[done] in ("git-push", "open-pr"))
        assert not (superseded and names[done] != "health-check")
    if isinstance(action, Verify):
        assert not holds
        assert names[done] == "health-check"
