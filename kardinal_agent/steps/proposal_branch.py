"""The branch of a promotion's proposal: once it is noted, it stays the same for the attempt."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.api import PromotionStep, names
from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.steps.declaration import PlannedStep, Role

__all__ = ["proposal_branch"]


def proposal_branch(step: PromotionStep, status: PromotionStepStatus, sequence: Sequence[PlannedStep]) -> str:
    """Return the branch that is proposed, or is going to be.

    A push that began before branches were noted was made to the branch that earlier versions named.
    """
    if status.proposal is not None:
        return status.proposal.branch
    if status.pull_request is not None:
        return status.pull_request.branch
    spec = step.spec
    begun = sequence[: len(status.steps)]
    if any(planned.declaration.role is Role.PUSH for planned in begun):
        return names.earlier_branch_name(spec.bundle_ref, spec.environment, spec.attempt)
    return names.branch_name(step.metadata.namespace, spec.bundle_ref, spec.environment, spec.attempt)
