"""The branch of a promotion's proposal: once it is noted, it stays the same for the attempt.

A later attempt that goes on with an open proposal keeps the branch, and so the trailers of the attempt that made it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.api import PromotionStep, names
from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.steps.declaration import PlannedStep, Role

__all__ = ["proposal_branch", "proposed_by"]


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


def proposed_by(step: PromotionStep, status: PromotionStepStatus) -> int | None:
    """Return the attempt whose trailers the commit of the proposal has: that which made it, else the present one."""
    spec, noted = step.spec, status.proposal.branch if status.proposal is not None else ""
    named = (
        names.branch_name(step.metadata.namespace, spec.bundle_ref, spec.environment),
        names.earlier_branch_name(spec.bundle_ref, spec.environment),
    )
    for name in named:
        number = noted.removeprefix(f"{name}-")
        if noted == name or (number != noted and number.isdecimal()):
            return None if noted == name else int(number)
    return spec.attempt
