"""The evidence of a promotion has a size, and so has the status of a Bundle that keeps it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.promotion.api.bundle import KEPT_ATTEMPTS, AttemptRecord, BundleStatus, EnvironmentStatus
from kardinal.promotion.api.evidence import (
    EARLIER_EVIDENCE_BYTES,
    EVIDENCE_BYTES,
    Evidence,
    GateResult,
    PhaseDurations,
    bounded,
)

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
ETCD_LIMIT = 1_572_864
"""Bytes of a request that etcd takes."""


def _size(value: Any) -> int:
    return len(json.dumps(value.to_json(), ensure_ascii=False).encode())


def _gate(number: int, result: str = "pass", *, name: int = 253, reason: str = "x" * 1024) -> GateResult:
    return GateResult.model_validate(
        {
            "name": f"{number:02}".ljust(name, "g"),
            "namespace": "n" * 63,
            "templateGeneration": 2**62,
            "scope": "team",
            "result": result,
            "reason": reason,
            "evaluatedAt": NOW,
        }
    )


def _evidence(*gates: GateResult, approvers: int = 0, images: int = 0) -> Evidence:
    long = timedelta(hours=999, milliseconds=999)
    return Evidence(
        gate_duration=long,
        durations=PhaseDurations(promoting=long, waiting_for_merge=long, health_checking=long),
        approved_by=("é" * 256,) * approvers,
        merged_by="é" * 256,
        images=("i" * 600,) * images or None,
        policy_gates=gates,
    )


def test_small_evidence_stays_as_it_is() -> None:
    evidence = _evidence(_gate(1, reason="soaked 45m of 30m"))
    assert bounded(evidence) is evidence


def test_reasons_are_cut_before_gates_are_left_out() -> None:
    cut = bounded(_evidence(*(_gate(number, name=20) for number in range(12))))
    assert _size(cut) <= EVIDENCE_BYTES
    assert (len(cut.policy_gates), cut.omitted_gates) == (12, None)
    assert {gate.reason for gate in cut.policy_gates} == {"x" * 127 + "…"}


def test_images_are_left_out_before_gates_are() -> None:
    small = [_gate(number, name=20, reason="soaked") for number in range(12)]
    cut = bounded(_evidence(*small, images=64))
    assert _size(cut) <= EVIDENCE_BYTES
    assert (len(cut.policy_gates), cut.omitted_gates, cut.images) == (12, None, None)
    assert bounded(_evidence(*small, images=3)).images == ("i" * 600,) * 3


def test_gates_that_did_not_pass_are_kept_longest_and_those_left_out_are_counted() -> None:
    gates = [_gate(number, "fail" if number == 60 else "pass") for number in range(64)]
    cut = bounded(_evidence(*gates))
    assert _size(cut) <= EVIDENCE_BYTES
    assert cut.policy_gates[0].name == gates[60].name
    assert cut.omitted_gates == 64 - len(cut.policy_gates)


@pytest.mark.parametrize("limit", [EVIDENCE_BYTES, EARLIER_EVIDENCE_BYTES])
def test_the_most_that_anyone_can_bring_is_cut_to_size(limit: int) -> None:
    gates = [_gate(number, reason="\u202e" * 1024) for number in range(64)]
    cut = bounded(_evidence(*gates, approvers=16, images=64), limit)
    assert _size(cut) <= limit
    assert cut.omitted_gates is not None


def test_the_largest_status_of_a_bundle_can_be_stored() -> None:
    most = _evidence(*map(_gate, range(64)), approvers=16, images=64)
    shared: dict[str, Any] = {
        "state": "Superseded",
        "request": "r" * 63,
        "displaced_by": "d" * 253,
        "started_at": NOW,
        "promoted_at": NOW,
        "verified_at": NOW,
        "commit": "c" * 64,
        "pr_url": "p" * 2048,
    }
    earlier = AttemptRecord(attempt=2**31, message="m" * 256, evidence=bounded(most, EARLIER_EVIDENCE_BYTES), **shared)
    entry = EnvironmentStatus(
        message="m" * 1024,
        attempts=(earlier,) * KEPT_ATTEMPTS,
        prepared_at=NOW,
        admitted_at=NOW,
        replaced_at=NOW,
        evidence=bounded(most),
        **shared,
    )
    status = BundleStatus(environments={f"{number:02}".ljust(63, "e"): entry for number in range(64)})
    assert _size(status) < ETCD_LIMIT
