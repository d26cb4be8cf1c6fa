"""What a promotion does next, decided from values alone.

    Pending → Promoting → WaitingForMerge → HealthChecking → Verified
                 └───────────────┴────────────────┴────────→ Failed

The reconciler observes, asks `decide`, carries out the one action it names, and asks again. Because the decision has no
memory but the status, a process that dies anywhere comes back to the same question; because it is a function, every
combination can be tested without a server.

The order of the questions is the design: what has ended stays ended; a superseded Bundle is abandoned before anything
else is tried for it, unless its change has landed; a failed attempt waits for its time whatever wakes it; and what
changes something outside the process asks for permission at the last moment, every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kardinal.api.pipeline import StepSpec
from kardinal.api.promotion_step import PromotionState, PromotionStepSpec, PromotionStepStatus

__all__ = [
    "SUPERSEDED",
    "Abandon",
    "Action",
    "Await",
    "Delay",
    "Fail",
    "Hold",
    "Rest",
    "Run",
    "Verify",
    "View",
    "current_index",
    "decide",
    "state_of",
]

_ENDED = ("Verified", "Failed")
_REACHES_OUTSIDE = frozenset(["git-push", "open-pr", "wait-for-merge"])
_NEEDS_PERMISSION = frozenset(["git-push", "open-pr"])
"""`wait-for-merge` looks first and asks only when it is about to merge."""
SUPERSEDED = "Superseded"
"""The reason of a promotion that ended because its Bundle did."""

_STATES: dict[str, PromotionState] = {"wait-for-merge": "WaitingForMerge", "health-check": "HealthChecking"}


@dataclass(frozen=True, slots=True)
class View:
    """Everything the decision depends on."""

    spec: PromotionStepSpec
    status: PromotionStepStatus
    sequence: Sequence[StepSpec]
    now: datetime
    mine: bool = True
    """Whether this agent serves the shard of the step, and the step is not being deleted."""
    bundle_known: bool = True
    superseded: bool = False
    refusal: str | None = None
    """Why the order cannot be executed as written."""
    holds: Sequence[str] = ()
    """What forbids every effect outside the process, each in words."""
    proven: bool = False
    """Whether the last step has just proven what it is there to prove."""


@dataclass(frozen=True, slots=True)
class Rest:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class Await:
    """Something must happen before the promotion may start."""

    message: str


@dataclass(frozen=True, slots=True)
class Delay:
    """The last attempt failed; the next one is due at `until`."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Abandon:
    """The Bundle is superseded: withdraw what has not landed."""


@dataclass(frozen=True, slots=True)
class Fail:
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Hold:
    """A freeze or a gate forbids the next effect."""

    message: str


@dataclass(frozen=True, slots=True)
class Run:
    """Execute the step at `index`; where it reaches outside the process, what is known is written down first."""

    index: int
    outside: bool


@dataclass(frozen=True, slots=True)
class Verify:
    """Everything is proven and nothing holds it."""


Action = Rest | Await | Delay | Abandon | Fail | Hold | Run | Verify


def decide(view: View) -> Action:
    """The next action."""
    spec, status = view.spec, view.status
    if not view.mine or status.state in _ENDED:
        return Rest()
    if not view.bundle_known:
        return Await(f"waits for Bundle {spec.bundle_ref} to be visible")
    superseded = view.superseded and not _landed(view)
    if superseded and not _reached_outside(status):
        return Fail(SUPERSEDED, f"superseded by a newer Bundle of {spec.pipeline} before anything was written")
    if view.refusal is not None:
        return Fail("InvalidSpec", view.refusal)
    if status.started_at is None and not _upstream_verified(spec):
        return Await("waits until every upstream environment is Verified")
    if status.retry is not None and view.now < status.retry.next_at:
        return Delay(status.retry.next_at)
    if superseded:
        return Abandon()
    index = current_index(status, view.sequence)
    uses = view.sequence[index].uses
    if view.holds and (uses in _NEEDS_PERMISSION or view.proven):
        return Hold("; ".join(view.holds))
    return Verify() if view.proven else Run(index, uses in _REACHES_OUTSIDE)


def current_index(status: PromotionStepStatus, sequence: Sequence[StepSpec]) -> int:
    """The first step that has not succeeded; the last one is never done before the promotion is."""
    done = [progress.state == "Succeeded" for progress in status.steps]
    return min(done.index(False) if False in done else len(done), len(sequence) - 1)


def state_of(uses: str) -> PromotionState:
    """The state a promotion is in while it is at this step."""
    return _STATES.get(uses, "Promoting")


def _landed(view: View) -> bool:
    """Whether the change is where the environment takes it from: nothing is left but to prove it."""
    started = view.status.started_at is not None
    return started and view.sequence[current_index(view.status, view.sequence)].uses == "health-check"


def _reached_outside(status: PromotionStepStatus) -> bool:
    """Whether an effect may have happened: the note of it is written before."""
    return any(progress.uses in _REACHES_OUTSIDE for progress in status.steps)


def _upstream_verified(spec: PromotionStepSpec) -> bool:
    states = (spec.upstream_verified or "").split(",")
    return not spec.upstream_verified or all(state.strip() == "Verified" for state in states)
