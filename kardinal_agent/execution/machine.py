"""Decide what a promotion does next, from values alone.

    Pending → Promoting → WaitingForMerge → HealthChecking → Verified
                 └───────────────┴────────────────┴────────→ Failed

`Attempt` observes, asks `decide`, carries out the one action it names, and asks again. Because the decision has no
memory but the status, a process that dies anywhere comes back to the same question; because it is a function, every
combination can be tested without a server. Steps are known by what they declare, never by name.

The order of the questions is the design: what has ended stays ended; a superseded Bundle is abandoned before anything
else is tried for it, unless its change has landed; a failed attempt waits for its time whatever happens meanwhile; and
what changes something outside the process asks for permission at the last moment, every time. Before the first such
change the Bundle must be admitted to the environment: until then another one may be writing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kardinal.api.promotion_step import PromotionStepSpec, PromotionStepStatus
from kardinal.steps.declaration import StepDeclaration

__all__ = [
    "STOPPED",
    "SUPERSEDED",
    "Abandon",
    "Action",
    "Ask",
    "Await",
    "Block",
    "Delay",
    "Detect",
    "Fail",
    "Hold",
    "Observation",
    "Rest",
    "Run",
    "Skip",
    "Verify",
    "current_index",
    "decide",
    "given_up",
    "superseded_by",
]

SUPERSEDED = "Superseded"
"""The reason of a promotion that ended because its Bundle did."""

STOPPED = "Stopped"
"""The reason of a promotion that ended because its Bundle goes no further, though none has taken its place."""

_NEW = timedelta(seconds=2)
"""How old a PromotionStep must be before its status says that it waits: the rest may only be about to be visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything the decision depends on."""

    spec: PromotionStepSpec
    status: PromotionStepStatus
    sequence: Sequence[StepDeclaration]
    """The steps of the spec; empty where they cannot be executed."""
    now: datetime
    created: datetime | None = None
    mine: bool = True
    """Whether this agent serves the shard of the PromotionStep, and it is not being deleted."""
    superseded: bool = False
    """Whether another Bundle has taken the environment over, or the Bundle was stopped there."""
    successor: str = ""
    """The name of that Bundle, where it is known."""
    stopped: str = ""
    """The reason why the Bundle was stopped, in words."""
    admitted: bool = True
    """Whether the Bundle may write to the environment."""
    queued: str = ""
    """The reason why it is not, in words."""
    refusal: str | None = None
    """Why the PromotionStep cannot be executed as written."""
    holds: Sequence[str] = ()
    """The reasons against every effect outside the process, each in words."""
    mended: bool = False
    """Whether the credential that was refused has changed since."""
    undetermined: str | None = None
    """The part of what it would write that is not known yet, in words."""
    undetected: bool = False
    """Whether neither the spec nor the status says what proves the environment."""
    proven: bool = False
    """Whether the last step has just proven what it is there to prove."""
    skip: str | None = None
    """Why the current step is left out."""
    undecided: str | None = None
    """Why it cannot be said whether the current step is left out."""


@dataclass(frozen=True, slots=True)
class Rest:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class Await:
    """Something must happen before the promotion may start."""

    message: str


@dataclass(frozen=True, slots=True)
class Delay:
    """Nothing is to be done before `until`: the last attempt failed, or the PromotionStep is very new."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Detect:
    """Nothing says yet what proves the environment: find it, before anything is written for it."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """The Bundle is superseded: withdraw what has not landed."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The promotion ends without success."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Hold:
    """A freeze or a gate forbids the next effect."""

    message: str


@dataclass(frozen=True, slots=True)
class Block:
    """Something is missing without which nothing is done, not even inside the process."""

    message: str


@dataclass(frozen=True, slots=True)
class Ask:
    """The change is ready: say so, and wait to be admitted to the environment."""

    message: str


@dataclass(frozen=True, slots=True)
class Run:
    """Execute the step at `index`; where it reaches outside the process, what is known is written down first."""

    index: int
    outside: bool


@dataclass(frozen=True, slots=True)
class Skip:
    """Leave out the step at `index`."""

    index: int
    message: str


@dataclass(frozen=True, slots=True)
class Verify:
    """Everything is proven and nothing holds it."""


Action = Rest | Ask | Await | Block | Delay | Detect | Abandon | Fail | Hold | Run | Skip | Verify


def decide(seen: Observation) -> Action:
    """Return the next action."""
    spec, status = seen.spec, seen.status
    if not seen.mine or status.has_ended:
        return Rest()
    superseded = seen.superseded and not _landed(seen)
    if superseded and not _reached_outside(seen):
        reason, message = given_up(seen.stopped, seen.successor, spec.pipeline)
        return Fail(reason, message + ("; nothing was written" if seen.stopped else " before anything was written"))
    if seen.refusal is not None:
        return Fail("InvalidSpec", seen.refusal)
    if status.started_at is None and not _upstream_verified(spec):
        return _patient(seen) or Await("waits until every upstream environment is Verified")
    if status.retry is not None and seen.now < status.retry.next_at and not seen.mended:
        return Delay(status.retry.next_at)
    if superseded:
        return Abandon()
    if seen.undetermined is not None:
        return Block(seen.undetermined)
    index = current_index(status, seen.sequence)
    step = seen.sequence[index]
    if seen.undecided is not None:
        return Fail("ExpressionError", f"{step.name}: {seen.undecided}")
    if seen.skip is not None:
        return Skip(index, seen.skip)
    if seen.holds and (step.permission or seen.proven):
        return Hold("; ".join(seen.holds))
    return _wanting(seen, step) or (Verify() if seen.proven else Run(index, step.outside))


def _wanting(seen: Observation, step: StepDeclaration) -> Action | None:
    """Return what comes before a step that reaches outside: its Bundle is admitted, and its proof is known."""
    waits = step.outside and not seen.admitted and not _reached_outside(seen)
    if waits and (delay := _patient(seen)) is not None:
        return delay
    # Each action that follows writes the status, so that what is found is found once.
    if seen.undetected and (step.outside or step.proves):
        return Detect()
    return Ask(f"its change is ready, and {seen.queued or 'waits to be admitted'}") if waits else None


def current_index(status: PromotionStepStatus, sequence: Sequence[StepDeclaration]) -> int:
    """Return the first step that is not behind the promotion; the last one is never before the promotion ends.

    A step that has failed while the promotion goes on is one whose failure does not matter.
    """
    done = [progress.state != "Running" for progress in status.steps]
    return min(done.index(False) if False in done else len(done), len(sequence) - 1)


def given_up(stopped: str, successor: str, pipeline: str) -> tuple[str, str]:
    """Return why a promotion goes no further, as a reason and in words."""
    return (STOPPED, stopped) if stopped else (SUPERSEDED, superseded_by(successor, pipeline))


def superseded_by(successor: str, pipeline: str) -> str:
    """Return by whom a promotion is superseded, in words."""
    return f"superseded by {f'Bundle {successor}' if successor else f'a newer Bundle of {pipeline}'}"


def _patient(seen: Observation) -> Delay | None:
    """Return the delay of a new PromotionStep that only seems to wait."""
    # The server's clock may be ahead of ours by more than `_NEW`: then the age is negative and says nothing.
    if seen.created is not None and timedelta() <= seen.now - seen.created < _NEW:
        return Delay(seen.created + _NEW)
    return None


def _landed(seen: Observation) -> bool:
    """Return whether the change is where the environment takes it from: nothing is left but to prove it."""
    if seen.status.started_at is None or not seen.sequence:
        return False
    return not any(step.lands for step in seen.sequence[current_index(seen.status, seen.sequence) :])


def _reached_outside(seen: Observation) -> bool:
    """Return whether an effect may have happened: that a step is running is written before its effect.

    A step that the sequence no longer has may have had one.
    """
    inside = {step.name for step in seen.sequence if not step.outside}
    return any(progress.uses not in inside and progress.state != "Skipped" for progress in seen.status.steps)


def _upstream_verified(spec: PromotionStepSpec) -> bool:
    return all(state == "Verified" for state in spec.upstream_states)
