"""What a promotion can show for itself when it is Verified (DD 5.4)."""

from __future__ import annotations

from kardinal.api import PromotionStep
from kardinal.api.evidence import Evidence
from kardinal.api.promotion_step import PromotionStepStatus
from kardinal_agent.execution.gates import Gates

__all__ = ["evidence_of"]

_NAME_LIMIT = 256
"""What the schema allows for the name of an approver."""


def evidence_of(step: PromotionStep, status: PromotionStepStatus, gates: Gates) -> Evidence:
    """Gates with the values they saw, how long they held, and who approved; the agent's own merge approves nothing."""
    merged_by = ((status.outputs or {}).get("wait-for-merge") or {}).get("mergedBy")
    approved = step.spec.approval == "pr-review" and merged_by
    return Evidence(
        gate_duration=gates.duration(step),
        # Whoever may write to the repository may write any name there.
        approved_by=(str(merged_by)[:_NAME_LIMIT],) if approved else (),
        policy_gates=tuple(gates.results(step)),
    )
