"""The facts that the steps of a promotion have found so far, named by their meaning and not by a step.

`status.outputs` holds the outputs of each step under the name of the step, for people and tools. Later steps read facts
instead: each declaration says which of its outputs is which fact, so another step can provide the same fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.steps.declaration import PlannedStep

__all__ = ["StepFacts", "facts_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """Facts of one promotion; a fact is None until a step has found it."""

    base_commit: str | None = None
    """The commit of the target branch on which the edits are planned."""
    source_commit: str | None = None
    """The commit that an environment's own branch is rendered from."""
    changed: bool | None = None
    """Whether the edits change anything on their branch."""
    merged_commit: str | None = None
    """The commit of this promotion, if it was on the target branch already when the push started."""
    merged_by: str | None = None
    """The user who merged the pull request."""
    approved_by: Sequence[str] | None = None
    """The users whose reviews approved the pull request when it was merged."""
    mirrors: Mapping[str, str] | None = None
    """Promoted repositories, each with the repository that runs in its place."""


def facts_of(status: PromotionStepStatus, steps: Iterable[PlannedStep]) -> StepFacts:
    """Read the facts from the outputs in `status`. If several steps found the same fact, the first one counts."""
    found: dict[str, Any] = {}
    for step in steps:
        outputs: Mapping[str, Any] = (status.outputs or {}).get(step.spec.output_name) or {}
        left = {fact: outputs[key] for key, fact in step.declaration.outputs.items() if key in outputs}
        found = left | found
    return StepFacts(**found)
