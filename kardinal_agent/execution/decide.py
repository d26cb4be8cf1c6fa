"""Decide the next action of a promotion (pure).

    Pending → Promoting → WaitingForMerge → HealthChecking → Verified
                 └───────────────┴────────────────┴────────→ Failed

The reconciler observes the facts, derives their projection, carries out the action of `decide`, and begins again. The
decision has no memory except the status, so a process that was killed at any moment decides the same when it is back;
and it is a function, so every combination is tested without a server. Steps are distinguished by their declarations,
never by name.

The order of the questions is the design. An ended promotion stays ended. A superseded one is abandoned before anything
else, unless its change has landed. After a failure the next try waits for its time. Every effect outside the process
asks for permission immediately before, and the first one waits until the Bundle is admitted to the environment, because
another Bundle may be writing there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kardinal.promotion.api.promotion_step import PromotionStepSpec, PromotionStepStatus
from kardinal.promotion.steps.declaration import StepDeclaration
from kardinal_agent.execution.observe import Facts
from kardinal_agent.execution.rules import Projection, current_index
from kardinal_agent.steps.base import Wait, WaitKind

__all__ = [
    "METRICS_FAILED",
    "STOPPED",
    "SUPERSEDED",
    "Abandon",
    "Action",
    "Delay",
    "Detect",
    "Fail",
    "Rest",
    "Run",
    "Skip",
    "Verify",
    "Wait",
    "WaitKind",
    "decide",
    "given_up",
    "reason_of",
]

SUPERSEDED = "Superseded"
"""The reason of a promotion that ended because another Bundle superseded its own."""

METRICS_FAILED = "MetricsFailed"
"""The reason of a promotion that ended because a metric of its environment fails."""

STOPPED = "Stopped"
"""The reason of a promotion that ended because its Bundle was stopped, though no other Bundle supersedes it."""

_NEW = timedelta(seconds=2)
"""The age below which the status does not say that the PromotionStep waits: caches may only be a moment behind."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing, for a reason."""

    reason: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Delay:
    """Do nothing before `until`: the last try failed, or the PromotionStep is very new."""

    until: datetime


@dataclass(frozen=True, slots=True)
class Detect:
    """Find the object that proves the environment, before the first effect."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """Withdraw the change of a superseded Bundle, unless it has landed."""


@dataclass(frozen=True, slots=True)
class Fail:
    """End the promotion without success."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Run:
    """Run the step at `index`; before a step that has an effect `outside` the process, the status is written."""

    index: int
    outside: bool


@dataclass(frozen=True, slots=True)
class Skip:
    """Leave out the step at `index`."""

    index: int
    message: str


@dataclass(frozen=True, slots=True)
class Verify:
    """End the promotion with success: the environment is proven, its metrics pass, and nothing holds the promotion."""


Action = Rest | Wait | Delay | Detect | Abandon | Fail | Run | Skip | Verify


def decide(facts: Facts, projection: Projection) -> Action:
    """Return the next action."""
    spec = facts.step.spec
    status = facts.status
    if not projection.mine:
        return Rest("another agent serves its shard, or it is being deleted")
    if status.has_ended:
        return Rest(f"it has ended: {status.state}")
    superseded = projection.superseded and not _landed(status, projection)
    if superseded and not _reached_outside(status, projection):
        reason, message = given_up(projection, spec.pipeline)
        nothing = "; nothing was written" if projection.stopped else " before anything was written"
        return Fail(reason, message + nothing)
    if projection.refusal is not None:
        return Fail("InvalidSpec", projection.refusal)
    if status.started_at is None and not _upstream_verified(spec):
        return _patient(facts) or Wait(WaitKind.START, "waits until every upstream environment is Verified")
    if status.retry is not None and facts.now < status.retry.next_at and not facts.found.mended:
        return Delay(status.retry.next_at)
    if superseded:
        return Abandon()
    if projection.undetermined is not None:
        # Nothing is done without it, not even inside the process.
        return Wait(WaitKind.BLOCKED, projection.undetermined)
    index = current_index(status, projection.sequence)
    step = projection.sequence[index]
    if projection.undecided is not None:
        return Fail("ExpressionError", f"{step.name}: {projection.undecided}")
    if projection.skip is not None:
        return Skip(index, projection.skip)
    if facts.holds and (step.permission or facts.found.proven):
        return Wait(WaitKind.HELD, "; ".join(facts.holds))
    wanting = _wanting(facts, projection, step)
    return wanting or (_proven(facts) if facts.found.proven else Run(index, step.outside))


def _proven(facts: Facts) -> Verify | Fail | Wait:
    """Return what follows the proof of an environment: its metrics decide, if it has any."""
    metrics = facts.verification
    if metrics is None or metrics.state == "passed":
        return Verify()
    if metrics.state == "failed":
        return Fail(METRICS_FAILED, metrics.message)
    return Wait(WaitKind.STEP, metrics.message)


def _wanting(facts: Facts, projection: Projection, step: StepDeclaration) -> Action | None:
    """Return the action that a step with an effect outside needs first: to be admitted, and to know its proof."""
    waits = step.outside and not projection.admitted and not _reached_outside(facts.status, projection)
    if waits and (delay := _patient(facts)) is not None:
        return delay
    # Each action that follows writes the status, so that what is found is found once.
    if projection.undetected and (step.outside or step.proves):
        return Detect()
    if not waits:
        return None
    return Wait(WaitKind.ADMISSION, f"its change is ready, and {projection.queued or 'waits to be admitted'}")


def reason_of(action: Action) -> str:
    """Return the reason of an action, for the log."""
    match action:
        case Rest(reason):
            return reason
        case Wait(_, message) | Skip(_, message):
            return message
        case Fail(reason, message):
            return f"{reason}: {message}"
        case Delay(until):
            return f"nothing is due before {until.isoformat()}"
        case Detect():
            return "it is not known yet what proves the environment"
        case Abandon():
            return "its Bundle goes no further, and something may have been written"
        case Verify():
            return "everything is proven and nothing holds it"
        case Run(_, outside):
            return "nothing holds what it does outside the process" if outside else "it stays inside the process"


def given_up(projection: Projection, pipeline: str) -> tuple[str, str]:
    """Return the reason why a promotion is abandoned, as one word and as a message."""
    if projection.stopped:
        return STOPPED, projection.stopped
    by = f"Bundle {projection.successor}" if projection.successor else f"a newer Bundle of {pipeline}"
    return SUPERSEDED, f"superseded by {by}"


def _patient(facts: Facts) -> Delay | None:
    """Return the delay of a PromotionStep that is so new that it may not have to wait."""
    created = facts.step.metadata.creation_timestamp
    # The server's clock may be ahead of ours by more than `_NEW`: then the age is negative and says nothing.
    if created is not None and timedelta() <= facts.now - created < _NEW:
        return Delay(created + _NEW)
    return None


def _landed(status: PromotionStepStatus, projection: Projection) -> bool:
    """Return whether the change has landed, so that only the proof is left."""
    if status.started_at is None or not projection.sequence:
        return False
    return not any(step.lands for step in projection.sequence[current_index(status, projection.sequence) :])


def _reached_outside(status: PromotionStepStatus, projection: Projection) -> bool:
    """Return whether an effect may have happened: the status has a step as Running before its effect.

    A step that is no longer in the sequence may have had an effect.
    """
    inside = {step.name for step in projection.sequence if not step.outside}
    return any(progress.uses not in inside and progress.state != "Skipped" for progress in status.steps)


def _upstream_verified(spec: PromotionStepSpec) -> bool:
    return all(state == "Verified" for state in spec.upstream_states)
