"""The facts that the steps of a promotion have found so far, each named by its meaning and not by its step.

`status.outputs` holds the outputs of each step under its name, for people and tools to read. A later step reads facts
instead: the declarations say which output is which fact, so that another step may take the place of one that found it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.steps.declaration import PlannedStep

__all__ = ["Facts", "facts_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts of one promotion; None for what no step has said yet."""

    base_commit: str | None = None
    """The commit of the target branch that the edits are planned on."""
    source_commit: str | None = None
    """The commit that an environment's own branch is rendered from."""
    changed: bool | None = None
    """Whether the edits change anything on their branch."""
    merged_commit: str | None = None
    """The commit of this promotion that was found on the target branch before anything was proposed."""
    merged_by: str | None = None
    """The user who merged the pull request."""
    approved_by: Sequence[str] | None = None
    """The users whose reviews approved it when it was merged."""
    mirrors: Mapping[str, str] | None = None
    """The repositories that run in place of promoted ones."""


def facts_of(status: PromotionStepStatus, steps: Iterable[PlannedStep]) -> Facts:
    """Read the facts that `steps` have left in the outputs of `status`; the first step that found one is believed."""
    found: dict[str, Any] = {}
    for step in steps:
        outputs: Mapping[str, Any] = (status.outputs or {}).get(step.spec.output_name) or {}
        left = {fact: outputs[key] for key, fact in step.declaration.outputs.items() if key in outputs}
        found = left | found
    return Facts(**found)
