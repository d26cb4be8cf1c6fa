"""Read the facts that the decision about a promotion depends on; no rule is applied here.

The PromotionStep and its Bundle were read, and traced to each other, when the run began (`ownership`); the status is
the draft of this run. Gates and the clock are read anew each time, because the last effect may have taken minutes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kardinal.clock import Clock
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.metrics.verification import Verification
from kardinal_agent.execution.gates import StepGates
from kardinal_agent.execution.ownership import OwnedStep

__all__ = ["Facts", "Found", "observe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The facts that a run has found out by itself, and that are in no status yet."""

    mended: bool = False
    """Whether the credential that was refused has changed since."""
    landed: bool = False
    """Whether the repository has the change of a Bundle that was superseded meanwhile."""
    proven: bool = False
    """Whether the last step has proven the environment in this run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the rules and the decision read."""

    step: PromotionStep
    bundle: Bundle
    status: PromotionStepStatus
    """The draft of the status: the one on the server, with the changes that this run has made so far."""
    now: datetime
    shard: str | None = None
    """The shard that this agent serves."""
    holds: Sequence[str] = ()
    """The reasons against every effect outside the process, each in words."""
    found: Found = Found()
    verification: Verification | None = None
    """Whether the metrics of the environment pass; None if it has none."""


def observe(
    owned: OwnedStep,
    status: PromotionStepStatus,
    found: Found,
    *,
    gates: StepGates,
    verification: Verification | None,
    shard: str | None,
    clock: Clock,
) -> Facts:
    """Return the facts of this moment."""
    return Facts(
        step=owned.step,
        bundle=owned.bundle,
        status=status,
        now=clock.now(),
        shard=shard,
        holds=gates.holds(landed=status.promoted_at is not None),
        found=found,
        verification=verification,
    )
