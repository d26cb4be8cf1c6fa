"""Decide whether to write a gate's status, and when to evaluate it again.

Every write of a gate wakes its Graph and every watcher, so a gate without news writes nothing. A closed
gate speaks when it opens or when something other than time has changed what it sees. An open gate is renewed every
recheckInterval, because the Graph lets only a fresh answer through.

Once its step exists the agent asks for the answer before every effect, and one counts until `nextTransitionAt`. So an
answer is written again when that moment has come or is another one, and one that rests on a soak, which may end at any
moment, counts for the freshness window and is renewed every interval. One that neither time nor a soak can change is
left alone, and so is every answer after the last effect, except where it turns.

Whether something other than time has changed needs no memory: asked again for the moment of the last answer, an
expression whose inputs are the same gives the same reason.

An expression that is too much work is the exception. It is held in quarantine with its reason until the expression or
the Bundle changes, or every look at the gate would cost its whole budget again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from kardinal import cel
from kardinal.api import PolicyGate
from kardinal.api.policy_gate import PolicyGateStatus
from kardinal.policy.context import Context
from kardinal.policy.evaluate import Answer, evaluate
from kardinal.policy.freshness import freshness_window, is_perishable, reads_clock, recheck_interval
from kardinal.policy.transition import next_transition

__all__ = ["Decision", "decide"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, the status to write (None: what stands is right), and when to look again."""

    answer: Answer
    status: PolicyGateStatus | None
    look_again: timedelta


def decide(
    gate: PolicyGate,
    context: Context,
    *,
    now: datetime,
    passed: bool,
    settled: bool = False,
    quarantine: cel.Quarantine[Answer] | None = None,
) -> Decision:
    """Return the decision for an instance.

    `passed`: the step behind the gate exists, or will not. `settled`: no effect of it is to come.
    `quarantine` remembers, for as long as the caller keeps it, the gates that overran.
    """
    expression = gate.spec.expression
    answer = _answer(gate, context, now=now, quarantine=quarantine or cel.Quarantine())
    turn = None if answer.overran else next_transition(expression, context, now=now)
    until = _counts_until(gate, answer, turn, now=now)
    renewed = answer.ready and (not passed or until != turn) and not settled
    moved = until == turn and gate.status.next_transition_at != turn
    stage = _Stage(passed=passed, settled=settled, renewed=renewed, moved=moved)
    interval = recheck_interval(gate.spec)
    status = None
    if _must_be_written(gate, answer, context, now=now, stage=stage):
        status = PolicyGateStatus(
            observed_generation=gate.metadata.generation or None,
            ready=answer.ready,
            last_evaluated_at=now,
            next_transition_at=until,
            reason=answer.reason,
        )
    elif renewed:
        interval -= now - (gate.status.last_evaluated_at or now)
    return Decision(answer, status, min(interval, turn - now) if turn else interval)


@dataclass(frozen=True, slots=True)
class _Stage:
    """The promotion behind a gate, as `decide` is told, and how its answer ends.

    `renewed`: it is written again every interval. `moved`: another moment than the one in the status turns it.
    """

    passed: bool
    settled: bool
    renewed: bool
    moved: bool


def _counts_until(gate: PolicyGate, answer: Answer, turn: datetime | None, *, now: datetime) -> datetime | None:
    """Return the moment from which an answer does not count any more; None where only a change ends it."""
    if not answer.ready:
        return turn
    program = cel.compile(gate.spec.expression)
    if is_perishable(program):
        window = now + freshness_window(gate.spec)
        return min(turn, window) if turn is not None else window
    if turn is None and reads_clock(program):
        return now + recheck_interval(gate.spec)
    return turn


def _answer(gate: PolicyGate, context: Context, *, now: datetime, quarantine: cel.Quarantine[Answer]) -> Answer:
    place = gate.metadata.uid
    version = (gate.spec.expression, context.bundle.metadata.uid, context.bundle.metadata.resource_version)
    held = quarantine.held(place, version)
    if held is not None:
        return held
    answer = evaluate(gate.spec.expression, context, now=now)
    if answer.overran:
        quarantine.hold(place, version, answer)
    return answer


def _must_be_written(gate: PolicyGate, answer: Answer, context: Context, *, now: datetime, stage: _Stage) -> bool:
    before = gate.status
    if before.last_evaluated_at is None or before.ready != answer.ready:
        return True
    if stage.settled:
        return False
    if stage.renewed and now - before.last_evaluated_at >= recheck_interval(gate.spec):
        return True
    if stage.moved or (before.next_transition_at is not None and before.next_transition_at <= now):
        return True
    if stage.passed:
        return False
    if answer.overran:
        return answer.reason != before.reason
    return evaluate(gate.spec.expression, context, now=before.last_evaluated_at).reason != before.reason
