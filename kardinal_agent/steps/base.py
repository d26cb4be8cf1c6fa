"""What a step is: a name in the registry and one asynchronous `run`.

A step reads the order (the PromotionStep), the Bundle and the outputs of the steps before it, and answers with an
outcome; it never writes status. It may run any number of times: a process can die between an effect and the note of it,
so whatever a step does outside it looks for before doing it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from kardinal.api import Bundle, PromotionStep
from kardinal.api.evidence import GateResult
from kardinal.api.pipeline import StepSpec
from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.git import Subscription
from kardinal_agent.health.verdict import HealthAdapter
from kardinal_agent.remotes import Remote

__all__ = ["Announcement", "Done", "Outcome", "Step", "StepContext", "Waiting"]


@dataclass(frozen=True)
class Announcement:
    """An Event that tells what a step has done."""

    reason: str
    note: str


@dataclass(frozen=True)
class Done:
    """The step has done its part. `update` are fields of the status, `outputs` what later steps may read."""

    message: str
    outputs: Mapping[str, Any] = field(default_factory=dict)
    update: Mapping[str, Any] = field(default_factory=dict)
    announcement: Announcement | None = None


@dataclass(frozen=True)
class Waiting:
    """The step cannot go on now; `until` is when it must look again even if nothing happens.

    `held`: it could, if nothing held the promotion. `subscribe` is how to be woken when another look is worth it.
    """

    message: str
    until: datetime | None = None
    held: bool = False
    subscribe: Callable[[Callable[[], None]], Subscription] | None = None


Outcome = Done | Waiting


@dataclass(frozen=True)
class StepContext:
    """Everything a step may look at; what is called is asked anew, or fetched when it is first needed."""

    step: PromotionStep
    bundle: Bundle
    status: PromotionStepStatus
    sequence: Sequence[StepSpec]
    index: int
    gates: Callable[[], Sequence[GateResult]]
    holds: Callable[[], Sequence[str]]
    health: HealthAdapter
    now: datetime
    remote: Callable[[], Awaitable[Remote]]

    def outputs(self, uses: str) -> Mapping[str, Any]:
        """What an earlier step left behind."""
        found: Mapping[str, Any] = (self.status.outputs or {}).get(uses) or {}
        return found

    @property
    def proposes(self) -> bool:
        """Whether the change goes through a pull request instead of straight to the branch."""
        return any(step.uses == "open-pr" for step in self.sequence)

    @property
    def merges_itself(self) -> bool:
        """Whether the pull request is for the record only (`approval: auto`, `pr: true`)."""
        return self.step.spec.approval == "auto"


class Step(Protocol):
    """One built-in step."""

    async def run(self, context: StepContext) -> Outcome: ...
