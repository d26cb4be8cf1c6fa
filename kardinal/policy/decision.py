"""Decide whether to write a gate's status, and when to evaluate it again.

Every write of a gate wakes its Graph and every watcher, so a gate without news writes nothing. A closed
gate speaks when it opens or when something other than time has changed what it sees. An open gate is renewed every
recheckInterval, because the Graph lets only a fresh answer through, and only until its step exists. From then on, and
after the Bundle has ended, only a change of the answer itself matters: the agent asks for it before every effect.

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
from kardinal.policy.freshness import recheck_interval
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
    quarantine: cel.Quarantine[Answer] | None = None,
) -> Decision:
    """Return the decision for an instance; `passed`: the step behind the gate exists, or its Bundle has ended.

    `quarantine` remembers, for as long as the caller keeps it, the gates that overran.
    """
    expression = gate.spec.expression
    answer = _answer(gate, context, now=now, quarantine=quarantine or cel.Quarantine())
    turn = None if answer.overran else next_transition(expression, context, now=now)
    interval = recheck_interval(gate.spec)
    written = _must_be_written(gate, answer, context, now=now, passed=passed)
    status = None
    if written:
        status = PolicyGateStatus(
            observed_generation=gate.metadata.generation or None,
            ready=answer.ready,
            last_evaluated_at=now,
            next_transition_at=turn,
            reason=answer.reason,
        )
    elif answer.ready and not passed:
        interval -= now - (gate.status.last_evaluated_at or now)
    return Decision(answer, status, min(interval, turn - now) if turn else interval)


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


def _must_be_written(gate: PolicyGate, answer: Answer, context: Context, *, now: datetime, passed: bool) -> bool:
    before = gate.status
    if before.last_evaluated_at is None or before.ready != answer.ready:
        return True
    if passed:
        return False
    if answer.ready and now - before.last_evaluated_at >= recheck_interval(gate.spec):
        return True
    if answer.overran:
        return answer.reason != before.reason
    return evaluate(gate.spec.expression, context, now=before.last_evaluated_at).reason != before.reason
