"""The evidence of a promotion: gate results, people, metrics and durations.

It is written when a promotion ends, and a Bundle keeps it for each environment after PromotionSteps and Graph are gone.
An object has its size, so the evidence of one promotion has one, too (`bounded`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from kardinal.api.base import DnsLabel, Model, ShortText, Span, Text, Time
from kardinal.objects.text import cut

__all__ = [
    "EARLIER_EVIDENCE_BYTES",
    "EVIDENCE_BYTES",
    "MAX_APPROVERS",
    "Evidence",
    "GateResult",
    "PhaseDurations",
    "bounded",
]

EVIDENCE_BYTES = 6 << 10
"""Size of the evidence of a promotion as JSON: a Bundle has up to 64 of them, and etcd takes 1.5 MiB."""

EARLIER_EVIDENCE_BYTES = 1 << 10
"""Size of the evidence of an earlier attempt, of which an environment keeps three."""

MAX_APPROVERS = 16

_REASON_LENGTHS = (512, 256, 128, 64, 0)


class GateResult(Model):
    """One gate as it stood when the promotion ended, with the values it saw."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the gate."""
    namespace: DnsLabel | None = None
    """Namespace of its template."""
    template_generation: int | None = None
    """Generation of the template that answered."""
    scope: Literal["org", "team"] | None = None
    """`org` or `team`."""
    result: Literal["pass", "fail"]
    """`pass` or `fail`."""
    reason: Text | None = None
    """The values that were seen."""
    evaluated_at: Time | None = None
    """The moment at which they were seen."""


class PhaseDurations(Model):
    """How long each phase of a promotion took, with the time in which it was held there."""

    promoting: Span | None = None
    """From the first step until the change was written, or proposed."""
    waiting_for_merge: Span | None = None
    """From the proposal until its merge."""
    health_checking: Span | None = None
    """From then until the proof."""


class Evidence(Model):
    metrics: Annotated[dict[str, float], Field(max_length=32)] = Field(default_factory=dict)
    """Values of metrics by name."""
    gate_duration: Span | None = None
    """How long gates held the promotion before it began."""
    durations: PhaseDurations | None = None
    """How long its phases took."""
    approved_by: Annotated[tuple[ShortText, ...], Field(max_length=MAX_APPROVERS)] = ()
    """People who approved it, as the host of the pull request says."""
    merged_by: ShortText | None = None
    """The user who merged the pull request, as its host says."""
    images: Annotated[tuple[Annotated[str, Field(max_length=700)], ...] | None, Field(max_length=64)] = None
    """The images that it promoted here, with the digests of the Bundle, or those that their tags had when it started;
    none where there is no room for all.
    """
    policy_gates: Annotated[tuple[GateResult, ...], Field(max_length=64)] = ()
    """The gates with their answers."""
    omitted_gates: Annotated[int | None, Field(ge=1)] = None
    """Gates that are left out for want of room."""


def bounded(evidence: Evidence, limit: int = EVIDENCE_BYTES) -> Evidence:
    """Return the evidence in at most `limit` bytes of JSON.

    Reasons are cut first; then images are left out, which the Bundle has, too; then gates, which is counted, those that
    passed before those that did not; then approvers.
    """
    shorter = evidence
    for shorter in _shorter(evidence):
        if len(json.dumps(shorter.to_json(), ensure_ascii=False).encode()) <= limit:
            break
    return shorter


def _shorter(evidence: Evidence) -> Iterator[Evidence]:
    """Yield the evidence, each time with less of it."""
    yield evidence
    gates = evidence.policy_gates
    for length in _REASON_LENGTHS:
        gates = tuple(_with_reason(gate, length) for gate in evidence.policy_gates)
        yield evidence.model_copy(update={"policy_gates": gates})
    evidence = evidence.model_copy(update={"images": None, "policy_gates": gates})
    yield evidence
    by_worth = sorted(gates, key=lambda gate: gate.result == "pass")
    for kept in range(len(gates) - 1, -1, -1):
        update = {"policy_gates": tuple(by_worth[:kept]), "omitted_gates": len(gates) - kept}
        yield evidence.model_copy(update=update)
    without = {"policy_gates": (), "omitted_gates": len(gates) or None}
    for kept in range(len(evidence.approved_by) - 1, -1, -1):
        yield evidence.model_copy(update={**without, "approved_by": evidence.approved_by[:kept]})


def _with_reason(gate: GateResult, length: int) -> GateResult:
    if gate.reason is None or len(gate.reason) <= length:
        return gate
    return gate.model_copy(update={"reason": cut(gate.reason, length) if length else None})
