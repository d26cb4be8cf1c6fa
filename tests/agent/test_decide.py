"""The decision: from facts and what follows from them to the one thing to do next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.promotion_step import PromotionStepSpec, PromotionStepStatus, Retry, StepProgress
from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.declaration import StepDeclaration
from kardinal.promotion.steps.sequence import default_sequence, planned
from kardinal_agent.execution.decide import (
    Abandon,
    Action,
    Delay,
    Detect,
    Fail,
    Rest,
    Run,
    Skip,
    Verify,
    Wait,
    WaitKind,
    decide,
)
from kardinal_agent.execution.observe import Facts, Found
from kardinal_agent.execution.rules import Projection

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
BUNDLE = Bundle.model_validate({"metadata": {"name": "my-app-1"}, "spec": {"artifacts": {}}})
PUSHED = ["git-clone", "kustomize-set-image", "git-commit", "git-push"]

AUTO, REVIEWED = (
    [
        step.declaration
        for step in planned(default_sequence(approval="auto", pr=pr, strategy="kustomize"), BUILTIN_STEPS)
    ]
    for pr in (False, True)
)


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
    """Return the status of a promotion that has done some steps and is at another one."""
    steps = [StepProgress(uses=uses, state="Succeeded") for uses in done]
    if running:
        steps.append(StepProgress(uses=running, state="Running"))
    values: dict[str, Any] = {"state": "Promoting", "started_at": NOW, "steps": tuple(steps)}
    return PromotionStepStatus(**values | fields)


def observed(status: PromotionStepStatus | None = None, **fields: Any) -> tuple[Facts, Projection]:
    """Return what is decided from: `fields` are those of Facts, Found and Projection, and of the PromotionStep."""
    metadata = {"name": "my-app-1-prod", "namespace": "team", "creationTimestamp": fields.pop("created", None)}
    step = PromotionStep.model_validate({"metadata": metadata, "spec": fields.pop("spec", spec())})
    found = Found(**{name: fields.pop(name) for name in ("mended", "landed", "proven") if name in fields})
    facts = Facts(
        step=step,
        bundle=BUNDLE,
        status=status or PromotionStepStatus(),
        now=fields.pop("now", NOW),
        holds=fields.pop("holds", ()),
        found=found,
    )
    return facts, Projection(**{"sequence": AUTO} | fields)


@pytest.mark.parametrize(
    ("seen", "action"),
    [
        pytest.param(observed(), Run(0, outside=False), id="a new promotion begins"),
        pytest.param(observed(at(*PUSHED[:3])), Run(3, outside=True), id="a push is written down before"),
        pytest.param(observed(at(*PUSHED[:2]), undetected=True), Run(2, outside=False), id="edits need no proof yet"),
        pytest.param(observed(at(*PUSHED[:3]), undetected=True), Detect(), id="a push needs to know its proof"),
        pytest.param(
            observed(at(*PUSHED[:3]), undetected=True, admitted=False), Detect(), id="what asks knows its proof"
        ),
        pytest.param(
            observed(at(*PUSHED[:3]), undetected=True, admitted=False, created=NOW),
            Delay(NOW + timedelta(seconds=2)),
            id="nothing is looked for twice",
        ),
        pytest.param(observed(at(*PUSHED), undetected=True), Detect(), id="a proof that was taken away is found again"),
        pytest.param(
            observed(at(*PUSHED[:3], running="git-push")), Run(3, outside=True), id="a push is taken up again"
        ),
        pytest.param(observed(at(*PUSHED)), Run(4, outside=False), id="what has landed is proven"),
        pytest.param(
            observed(at(*PUSHED, running="health-check"), proven=True), Verify(), id="what is proven is verified"
        ),
        pytest.param(observed(at(state="Verified")), Rest(), id="verified stays verified"),
        pytest.param(observed(at(state="Failed"), superseded=True), Rest(), id="failed stays failed"),
        pytest.param(observed(mine=False), Rest(), id="promotions of others are left alone"),
        pytest.param(
            observed(at(*PUSHED, "open-pr"), sequence=REVIEWED), Run(5, outside=True), id="a merge is waited for"
        ),
        pytest.param(
            observed(at(*PUSHED[:3]), holds=["frozen", "red"]), Wait(WaitKind.HELD, "frozen; red"), id="a push is held"
        ),
        pytest.param(
            observed(undetermined="no digest"),
            Wait(WaitKind.BLOCKED, "no digest"),
            id="what is not known is waited for",
        ),
        pytest.param(
            observed(at(*PUSHED[:3]), undetermined="no digest", holds=["frozen"]),
            Wait(WaitKind.BLOCKED, "no digest"),
            id="what is no longer known is not pushed",
        ),
        pytest.param(
            observed(at(*PUSHED[:3], running="git-push"), undetermined="no digest", superseded=True),
            Abandon(),
            id="what is not known keeps nothing from being taken back",
        ),
        pytest.param(
            observed(spec=spec(upstreamVerified="Pending"), undetermined="no digest"),
            Wait(WaitKind.START, "waits until every upstream environment is Verified"),
            id="what comes before is said first",
        ),
        pytest.param(observed(holds=["frozen"]), Run(0, outside=False), id="what stays inside is not held"),
        pytest.param(
            observed(at(*PUSHED, running="health-check"), holds=["frozen"]),
            Run(4, outside=False),
            id="looking is not held",
        ),
        pytest.param(
            observed(at(*PUSHED, running="health-check"), holds=["frozen"], proven=True),
            Wait(WaitKind.HELD, "frozen"),
            id="the verdict is held",
        ),
        pytest.param(
            observed(at(*PUSHED[:3], running="git-push"), superseded=True), Abandon(), id="an effect is taken back"
        ),
        pytest.param(
            observed(at(*PUSHED, running="health-check"), superseded=True),
            Run(4, outside=False),
            id="what has landed goes on though superseded",
        ),
        pytest.param(
            observed(at(*PUSHED, "open-pr", running="wait-for-merge"), sequence=REVIEWED, superseded=True),
            Abandon(),
            id="a proposal is taken back",
        ),
        pytest.param(observed(admitted=False), Run(0, outside=False), id="a change is made ready without admission"),
        pytest.param(
            observed(at(*PUSHED[:3]), admitted=False, queued="waits for Bundle app-1"),
            Wait(WaitKind.ADMISSION, "its change is ready, and waits for Bundle app-1"),
            id="a push waits for admission",
        ),
        pytest.param(
            observed(at(*PUSHED[:3]), admitted=False, created=NOW - timedelta(seconds=1)),
            Delay(NOW + timedelta(seconds=1)),
            id="a new promotion waits for admission without a word",
        ),
        pytest.param(
            observed(at(*PUSHED[:3], running="git-push"), admitted=False),
            Run(3, outside=True),
            id="an effect is taken up again without another admission",
        ),
        pytest.param(observed(refusal="wrong"), Fail("InvalidSpec", "wrong"), id="what cannot be executed is refused"),
        pytest.param(
            observed(spec=spec(upstreamVerified="Verified, Verified")),
            Run(0, outside=False),
            id="upstreams are verified",
        ),
    ],
)
def test_the_next_action(seen: tuple[Facts, Projection], action: Action) -> None:
    assert decide(*seen) == action


def test_nothing_begins_before_every_upstream_is_verified() -> None:
    for upstream in ("Promoting", "Verified,HealthChecking", "Verified,", "Failed"):
        assert isinstance(decide(*observed(spec=spec(upstreamVerified=upstream))), Wait)


def test_a_promotion_under_way_does_not_ask_for_its_upstream_again() -> None:
    assert isinstance(decide(*observed(at(*PUSHED[:3]), spec=spec(upstreamVerified="Failed"))), Run)


def test_superseded_before_any_effect_ends_without_reading_the_repository() -> None:
    waiting = Retry(attempts=3, last_error="x", next_at=NOW + timedelta(minutes=5))
    for status in (PromotionStepStatus(), at(*PUSHED[:3]), at(retry=waiting)):
        action = decide(*observed(status, superseded=True))
        assert isinstance(action, Fail)
        assert action.reason == "Superseded"


def test_a_failed_attempt_waits_for_its_time_whatever_happens_meanwhile() -> None:
    later = NOW + timedelta(minutes=5)
    status = at(*PUSHED[:3], running="git-push", retry=Retry(attempts=3, last_error="x", next_at=later))
    assert decide(*observed(status)) == Delay(later)
    assert decide(*observed(status, superseded=True)) == Delay(later)
    assert decide(*observed(status, now=later)) == Run(3, outside=True)


@pytest.mark.parametrize("age", [0.0, 1.5])
@pytest.mark.parametrize("fields", [{"spec": spec(upstreamVerified="Promoting")}])
def test_a_new_promotion_step_does_not_say_that_it_waits(age: float, fields: dict[str, Any]) -> None:
    created = NOW - timedelta(seconds=age)
    assert decide(*observed(created=created, **fields)) == Delay(created + timedelta(seconds=2))


@pytest.mark.parametrize("age", [-3600.0, 2.0])
@pytest.mark.parametrize("fields", [{"spec": spec(upstreamVerified="Promoting")}])
def test_an_older_one_does_and_so_does_one_of_a_server_whose_clock_is_ahead(age: float, fields: dict[str, Any]) -> None:
    created = NOW - timedelta(seconds=age)
    assert isinstance(decide(*observed(created=created, **fields)), Wait)


def test_a_step_is_known_by_what_it_declares() -> None:
    *written, proof = AUTO
    notify = StepDeclaration(name="notify", outside=True, permission=True)
    sequence = [*written, notify, proof]
    assert decide(*observed(at(*PUSHED), sequence=sequence)) == Run(4, outside=True)
    assert decide(*observed(at(*PUSHED), sequence=sequence, holds=["frozen"])) == Wait(WaitKind.HELD, "frozen")
    assert decide(*observed(at(*PUSHED), sequence=sequence, superseded=True)) == Run(4, outside=True)
    assert decide(*observed(at("notify"), sequence=[notify, *AUTO], superseded=True)) == Abandon()


def test_a_step_is_left_out_before_anything_holds_it() -> None:
    *written, proof = AUTO
    sequence = [*written, StepDeclaration(name="notify", outside=True, permission=True), proof]
    assert decide(*observed(at(*PUSHED), sequence=sequence, skip="no", holds=["frozen"])) == Skip(4, "no")
    failed = Fail("ExpressionError", "notify: cannot be said")
    assert decide(*observed(at(*PUSHED), sequence=sequence, undecided="cannot be said")) == failed


@pytest.mark.parametrize("state", ["Skipped", "Failed"])
def test_steps_left_out_or_failed_without_end_are_behind(state: Literal["Skipped", "Failed"]) -> None:
    notify = StepDeclaration(name="notify", outside=True)
    status = PromotionStepStatus(state="Promoting", started_at=NOW, steps=(StepProgress(uses="notify", state=state),))
    assert decide(*observed(status, sequence=[notify, *AUTO])) == Run(1, outside=False)
    superseded = decide(*observed(status, sequence=[notify, *AUTO], superseded=True))
    assert isinstance(superseded, Fail if state == "Skipped" else Abandon)


def test_a_step_that_the_sequence_no_longer_has_may_have_had_an_effect() -> None:
    assert decide(*observed(at(running="gone"), superseded=True)) == Abandon()
    assert isinstance(decide(*observed(at(running="git-clone"), superseded=True)), Fail)


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
    names = [step.name for step in sequence]
    done = min(done, len(names) - 1)
    status = at(*names[:done], running=names[done] if running else None)
    action = decide(
        *observed(
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
