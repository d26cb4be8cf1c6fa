"""Which approvals an expression sees, and the signature by which the controller knows its own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.objects.conditions import format_time
from kardinal.promotion.api import Approval, Bundle
from kardinal.promotion.policy.approvals import Approvals, ApprovalSigner, approvals_of
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import Answer, evaluate
from kardinal.promotion.policy.transition import next_transition
from tests.approvals.conftest import GATE, approval
from tests.support import objects
from tests.support.names import DEV, STAGING, TEAM

NOW = datetime(2026, 3, 3, 10, tzinfo=UTC)
SIGNER = ApprovalSigner(b"k" * 32)


def stored(name: str = "one", *, at: datetime = NOW, **spec: Any) -> Approval:
    bundle = {"metadata": {"name": "app-1", "uid": "u-1"}}
    made = approval(name, bundle, **{"via": "controller", **spec})
    made["metadata"] |= {"uid": f"uid-of-{name}", "creationTimestamp": format_time(at)}
    return Approval.model_validate(made)


def signed(found: Approval) -> Approval:
    status = found.status.model_copy(update={"signature": SIGNER.signature(found)})
    return found.model_copy(update={"status": status})


def external(name: str = "one", *, approved: bool = True, at: datetime = NOW, **spec: Any) -> Approval:
    answer = {"name": "change", "approved": approved, "signedAt": format_time(at)}
    return stored(name, gate=None, external=answer, **spec)


def seen(*found: Approval) -> Approvals:
    return approvals_of(found, uid="u-1", environment=DEV, gate=GATE, counts=lambda _: True)


def context(*found: Approval) -> GateContext:
    return GateContext(Bundle.model_validate(objects.bundle("app-1")), DEV, "auto", approvals=seen(*found))


def answer(expression: str, *found: Approval, now: datetime = NOW) -> Answer:
    return evaluate(expression, context(*found), now=now)


def test_people_are_listed_once_in_the_order_of_their_first_approval() -> None:
    found = [
        stored("c", approver="lee", at=NOW + timedelta(minutes=1)),
        stored("a", approver="dana", at=NOW),
        stored("b", approver="dana", at=NOW + timedelta(minutes=2)),
    ]
    assert seen(*found).variables(NOW)["approvals"] == [
        {"approver": "dana", "at": "2026-03-03T10:00:00Z"},
        {"approver": "lee", "at": "2026-03-03T10:01:00Z"},
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"uid": "u-2"},
        {"environment": STAGING},
        {"environment": None},
        {"gate": f"{TEAM}/signoff"},
        {"gate": f"{GATE}-2"},
    ],
    ids=["bundle", "environment", "no environment", "namespace of the gate", "gate"],
)
def test_approval_of_something_else_does_not_count(other: dict[str, Any]) -> None:
    assert seen(stored(**other)) == Approvals()


@pytest.mark.parametrize(
    "expression",
    [
        "approvals.exists(a, a.approver.endsWith(':dana'))",
        "approvals.filter(a, a.approver != bundle.provenance.?author.orValue('')).size() >= 1",
        "approvals.all(a, timestamp(a.at) <= now())",
        "approvals[0].approver != ''",
    ],
)
def test_gate_reads_who_and_when(expression: str) -> None:
    found = answer(expression, stored())
    assert found.ready, found.reason


def test_answer_names_the_people() -> None:
    assert answer("approvals.size() > 0").reason == "approvals = none"
    assert answer("approvals.size() > 0", stored(approver="dana"), stored("b", approver="lee")).values == (
        ("approvals", "dana, lee"),
    )


def test_approval_counts_until_it_expires() -> None:
    ends = NOW + timedelta(hours=1)
    found = stored(expiresAt=format_time(ends))

    assert answer("approvals.size() > 0", found, now=ends - timedelta(microseconds=1)).ready
    assert not answer("approvals.size() > 0", found, now=ends).ready
    assert next_transition("approvals.size() > 0", context(found), now=NOW) == ends
    assert next_transition("approvals.size() > 0 && schedule.hour >= 11", context(found), now=NOW) is None


def test_another_approval_of_the_person_goes_on_after_the_first_has_expired() -> None:
    ends = NOW + timedelta(hours=1)
    found = [stored(expiresAt=format_time(ends)), stored("later", at=NOW + timedelta(minutes=1))]
    assert answer("approvals.size() == 1", *found, now=NOW + timedelta(minutes=2)).ready
    assert answer("approvals.size() == 1", *found, now=ends).ready


def test_last_external_answer_counts() -> None:
    later = NOW + timedelta(minutes=1)
    found = [external("b", approved=False, at=later, reason="freeze"), external("a", at=NOW)]
    assert seen(*found).variables(later)["externalApproval"] == {
        "change": {"approved": False, "reason": "freeze", "at": "2026-03-03T10:01:00Z"}
    }


@pytest.mark.parametrize("order", [1, -1])
def test_refusal_counts_of_two_answers_of_one_second(order: int) -> None:
    found = [external("a", approved=False), external("b", approved=True)][::order]
    assert not answer('externalApproval["change"].approved', *found).ready


def test_expired_answer_does_not_bring_back_an_earlier_one() -> None:
    last = external("b", at=NOW + timedelta(minutes=1), expiresAt=format_time(NOW + timedelta(minutes=2)))
    found = answer('externalApproval["change"].approved', external("a"), last, now=NOW + timedelta(minutes=3))
    assert found.reason == (
        "externalApproval.change.approved is not set: no such external answer about this Bundle counts"
    )


def test_external_answer_is_for_its_environment_or_for_all() -> None:
    expression = "externalApproval.change.approved"
    assert answer(expression, external(environment=None)).ready
    assert answer(expression, external(environment=DEV)).ready
    assert not answer(expression, external(environment=STAGING)).ready


def test_signature_is_of_one_object() -> None:
    found = signed(stored(reason="ok", expiresAt=format_time(NOW)))
    assert SIGNER.is_signed(found)
    assert SIGNER.is_signed(Approval.model_validate({**found.model_dump(by_alias=True, mode="json")}))
    assert not ApprovalSigner(b"l" * 32).is_signed(found)
    assert not SIGNER.is_signed(stored())


@pytest.mark.parametrize(
    "change",
    [
        {"approver": "lee"},
        {"environment": STAGING},
        {"gate": f"{GATE}-2"},
        {"uid": "u-2"},
        {"bundle": "app-2"},
        {"reason": None},
        {"expires_at": None},
        {"via": "admission"},
    ],
)
def test_signature_covers_every_field(change: dict[str, Any]) -> None:
    found = signed(stored(reason="ok", expiresAt=format_time(NOW)))
    assert not SIGNER.is_signed(found.model_copy(update={"spec": found.spec.model_copy(update=change)}))


@pytest.mark.parametrize("change", [{"uid": "uid-of-two"}, {"name": "two"}, {"namespace": "elsewhere"}])
def test_signature_of_an_approval_that_was_deleted_is_not_one_of_its_copy(change: dict[str, str]) -> None:
    found = signed(stored())
    assert not SIGNER.is_signed(found.model_copy(update={"metadata": found.metadata.model_copy(update=change)}))


@pytest.mark.parametrize("expression", ["approvals.size() == 0", "!has(externalApproval.change)"])
def test_approvals_that_were_not_read_are_not_taken_for_none(expression: str) -> None:
    unread = GateContext(Bundle.model_validate(objects.bundle("app-1")), DEV, "auto")
    assert evaluate(expression, unread, now=NOW).result == "error"
    assert answer(expression).ready
