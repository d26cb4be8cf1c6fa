"""The answers of a gate as Events, one for each that is another one, and as the condition Ready of its instance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.promotion.api import Bundle, PolicyGate
from kardinal.promotion.api.policy_gate import KEPT_ANSWERS, PolicyGateStatus
from kardinal_controller.gates.events import GateEvent, gate_event, with_condition, with_history
from tests.support import objects

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
SILENT = PolicyGateStatus()
OPEN = PolicyGateStatus(ready=True, reason="soak = 30")
CLOSED = PolicyGateStatus(ready=False, reason="soak = 3")
PROMOTING = {"phase": "Promoting", "environments": {"prod": {"state": "Pending"}}}


def event(before: PolicyGateStatus, after: PolicyGateStatus, status: dict[str, Any] | None = None) -> GateEvent | None:
    bundle = Bundle.model_validate({**objects.bundle("app-1"), "status": status or PROMOTING})
    return gate_event("soak", "prod", bundle=bundle, before=before, after=after)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (SILENT, CLOSED, GateEvent("GateClosed", "gate soak before prod is closed: soak = 3")),
        (SILENT, OPEN, GateEvent("GateOpened", "gate soak before prod is open: soak = 30")),
        (CLOSED, OPEN, GateEvent("GateOpened", "gate soak before prod is open: soak = 30")),
        (OPEN, CLOSED, GateEvent("GateClosed", "gate soak before prod is closed: soak = 3")),
        (CLOSED, CLOSED.model_copy(update={"reason": "soak = 4"}), None),
        (OPEN, OPEN, None),
    ],
    ids=["closed at first", "open at first", "opened", "closed again", "other values", "renewed"],
)
def test_each_turn_of_a_gate_is_told_once(
    before: PolicyGateStatus, after: PolicyGateStatus, expected: GateEvent | None
) -> None:
    assert event(before, after) == expected


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Verified", "environments": {"prod": {"state": "Verified"}}},
        {"phase": "Superseded"},
        {"phase": "Promoting", "environments": {"prod": {"state": "Verified"}}},
        {"phase": "Promoting", "environments": {"prod": {"state": "Failed"}}},
    ],
    ids=["verified", "superseded", "the environment is verified", "the environment has failed"],
)
def test_a_gate_that_holds_nothing_any_more_is_not_told(status: dict[str, Any]) -> None:
    assert event(OPEN, CLOSED, status) is None


def test_the_condition_of_an_instance_says_what_its_answer_says() -> None:
    instance = PolicyGate.model_validate(objects.gate("soak", "true"))
    (opened,) = with_condition(OPEN, instance, "pass", now=NOW).conditions
    (closed,) = with_condition(CLOSED, instance, "fail", now=NOW).conditions
    (undecided,) = with_condition(CLOSED, instance, "error", now=NOW).conditions
    found = [(each.type, each.status, each.reason, each.message) for each in (opened, closed, undecided)]
    assert found == [
        ("Ready", "True", "Open", "soak = 30"),
        ("Ready", "False", "Closed", "soak = 3"),
        ("Ready", "False", "Undecided", "soak = 3"),
    ]


def test_the_history_of_an_instance_grows_when_it_opens_or_closes_and_is_bounded() -> None:
    instance = PolicyGate.model_validate(objects.gate("soak", "true"))
    said = [CLOSED, CLOSED.model_copy(update={"reason": "soak = 4"}), OPEN, OPEN, CLOSED]
    for minutes, answer in enumerate(said):
        status = with_history(answer, instance, now=NOW + timedelta(minutes=minutes))
        instance = instance.model_copy(update={"status": status})
    history = [(past.ready, past.since - NOW, past.reason) for past in instance.status.history or ()]
    assert history == [
        (False, timedelta(minutes=0), "soak = 3"),
        (True, timedelta(minutes=2), "soak = 30"),
        (False, timedelta(minutes=4), "soak = 3"),
    ]
    for turn in range(2 * KEPT_ANSWERS):
        answer = PolicyGateStatus(ready=turn % 2 == 0, reason=f"turn {turn}: {'x' * 1000}")
        instance = instance.model_copy(update={"status": with_history(answer, instance, now=NOW)})
    kept = instance.status.history or ()
    assert len(kept) == KEPT_ANSWERS
    assert (kept[-1].reason or "").startswith(f"turn {2 * KEPT_ANSWERS - 1}: ")
    assert PolicyGate.model_validate(instance.to_json()) == instance


def test_an_instance_without_an_answer_has_no_history() -> None:
    instance = PolicyGate.model_validate(objects.gate("soak", "true"))
    assert with_history(SILENT, instance, now=NOW).history is None
