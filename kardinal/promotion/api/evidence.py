"""The evidence of a promotion: gate results, people, metrics and durations.

It is written when a promotion ends, and the status of the Bundle keeps it for each environment after PromotionSteps and
Graph are gone. Because the size of an object is limited, so is the size of an evidence (`bounded`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from kardinal.models.base import DnsLabel, Model, ShortText, Span, Text, Time
from kardinal.objects.text import cut

__all__ = [
    "EARLIER_EVIDENCE_BYTES",
    "EVIDENCE_BYTES",
    "MAX_APPROVERS",
    "MAX_METRICS",
    "Evidence",
    "GateResult",
    "Inputs",
    "PhaseDurations",
    "bounded",
]

EVIDENCE_BYTES = 6 << 10
"""Maximum size of the evidence of a promotion in bytes of JSON: a Bundle has up to 64 of them, and etcd takes 1.5 MiB.
"""

EARLIER_EVIDENCE_BYTES = 1 << 10
"""Maximum size, in bytes of JSON, of the evidence of an earlier attempt, of which an environment keeps three."""

MAX_APPROVERS = 16
MAX_METRICS = 32

_REASON_LENGTHS = (512, 256, 128, 64, 0)


Inputs = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
"""Recorded values by variable: see `kardinal.promotion.policy.recording`."""


class GateResult(Model):
    """The answer of one gate at the end of the promotion, with the values that it read."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the gate."""
    namespace: DnsLabel | None = None
    """Namespace of its template."""
    template_generation: int | None = None
    """Generation of the template whose expression was evaluated."""
    scope: Literal["org", "team"] | None = None
    """`org` or `team`."""
    result: Literal["pass", "fail"]
    """`pass` or `fail`."""
    reason: Text | None = None
    """The values that the gate has read."""
    evaluated_at: Time | None = None
    """The time at which the gate was evaluated."""
    inputs: Inputs | None = None
    """The values that the gate has read, as data for `kardinal policy replay`; absent where there is no space."""


class PhaseDurations(Model):
    """The duration of each phase of a promotion, including the time in which it was held in the phase."""

    promoting: Span | None = None
    """Time from the first step until the change was written or proposed."""
    waiting_for_merge: Span | None = None
    """Time from the proposal until its merge."""
    health_checking: Span | None = None
    """Time from the landing of the change until the environment was Verified."""


class Evidence(Model):
    metrics: Annotated[dict[str, float], Field(max_length=MAX_METRICS)] = Field(default_factory=dict)
    """Values by MetricCheck: those of the verification, and those by which gates let the promotion through."""
    gate_duration: Span | None = None
    """How long gates held the promotion before it began."""
    durations: PhaseDurations | None = None
    """The durations of its phases."""
    approved_by: Annotated[tuple[ShortText, ...], Field(max_length=MAX_APPROVERS)] = ()
    """People who approved the pull request, according to its host."""
    merged_by: ShortText | None = None
    """The user who merged the pull request, according to its host."""
    images: Annotated[tuple[Annotated[str, Field(max_length=700)], ...] | None, Field(max_length=64)] = None
    """The images that were promoted here, with the digests of the Bundle, or those that their tags had when it started;
    absent if they do not all fit.
    """
    policy_gates: Annotated[tuple[GateResult, ...], Field(max_length=64)] = ()
    """The gates with their answers."""
    omitted_gates: Annotated[int | None, Field(ge=1)] = None
    """Number of gates that are left out for lack of space."""


def bounded(evidence: Evidence, limit: int = EVIDENCE_BYTES) -> Evidence:
    """Return the evidence cut to at most `limit` bytes of JSON.

    The inputs of gates are left out first, then reasons are cut, and images are left out, because the Bundle has them,
    too. Then gates are left out and counted, passed ones first, and then approvers.
    """
    shorter = evidence
    for shorter in _shorter(evidence):
        if len(json.dumps(shorter.to_json(), ensure_ascii=False).encode()) <= limit:
            break
    return shorter


def _shorter(evidence: Evidence) -> Iterator[Evidence]:
    """Yield the evidence again and again, each time with less content."""
    yield evidence
    for kept in range(len(evidence.policy_gates) - 1, -1, -1):
        gates = (*evidence.policy_gates[:kept], *map(_without_inputs, evidence.policy_gates[kept:]))
        yield evidence.model_copy(update={"policy_gates": gates})
    evidence = evidence.model_copy(update={"policy_gates": tuple(map(_without_inputs, evidence.policy_gates))})
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


def _without_inputs(gate: GateResult) -> GateResult:
    return gate if gate.inputs is None else gate.model_copy(update={"inputs": None})


def _with_reason(gate: GateResult, length: int) -> GateResult:
    if gate.reason is None or len(gate.reason) <= length:
        return gate
    return gate.model_copy(update={"reason": cut(gate.reason, length) if length else None})
