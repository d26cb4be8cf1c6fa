"""The answers of a gate as Events, one for each that is another one, and as the condition Ready of its instance."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kardinal.api import Bundle, PolicyGate
from kardinal.api.policy_gate import PolicyGateStatus
from kardinal_controller.gates.events import GateEvent, gate_event, with_condition
from tests.support import objects

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
SILENT, OPEN = PolicyGateStatus(), PolicyGateStatus(ready=True, reason="soak = 30")
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
