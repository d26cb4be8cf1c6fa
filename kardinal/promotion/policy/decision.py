"""Decide whether to write the status of a gate, and when to evaluate the gate again.

Every write to a gate wakes its Graph and every watcher, so the status is written only with news. A closed gate is
written when it opens, or when anything except time changed its values; values of metrics, which differ at each query,
every recheckInterval. An open gate is written again every
recheckInterval, because the Graph lets only a fresh answer through.

Once the PromotionStep exists, the agent asks for the answer before every effect, and an answer counts until
`nextTransitionAt`. So the answer is written again when that moment has come or has changed. An answer that rests on a
soak may become wrong at any moment: it counts for the freshness window and is renewed every interval. An answer that
neither time nor a soak can change is not renewed. After the last effect no answer is renewed; it is written only when
it changes between open and closed.

No memory is needed to see whether anything except time changed: the expression is evaluated once more for the moment of
the last answer, and equal values give an equal reason.

An expression that is too expensive is the exception. It stays in quarantine with its reason until the expression or the
Bundle changes; otherwise every look at the gate would cost the whole evaluation budget again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from kardinal import cel
from kardinal.objects.text import cut
from kardinal.promotion.api import PolicyGate
from kardinal.promotion.api.policy_gate import SEEN_VALUES, PolicyGateStatus, SeenValue
from kardinal.promotion.metrics.readings import METRICS
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import VALUE_LIMIT, Answer, evaluate, fault
from kardinal.promotion.policy.freshness import freshness_window, is_perishable, reads_clock, recheck_interval
from kardinal.promotion.policy.recording import record
from kardinal.promotion.policy.transition import NextTurn, search_transition

__all__ = ["AT_REST", "GateDecision", "decide"]

AT_REST = timedelta(hours=1)
"""The time after which an answer is looked at again that is not renewed, where its next moment is certain."""

_NAME_LIMIT = 256
"""The most characters of an attribute that an answer keeps; the key of a label may be longer."""


@dataclass(frozen=True, slots=True)
class GateDecision:
    """The answer, the status to write (None if the current status is right), and the time until the next evaluation."""

    answer: Answer
    status: PolicyGateStatus | None
    look_again: timedelta


def decide(
    gate: PolicyGate,
    context: GateContext,
    *,
    now: datetime,
    passed: bool,
    settled: bool = False,
    quarantine: cel.Quarantine[Answer] | None = None,
) -> GateDecision:
    """Return the decision for a gate instance.

    `passed`: the PromotionStep behind the gate exists, or will never exist. `settled`: the step will have no further
    effect. `quarantine` remembers the gates whose evaluation was too expensive, for as long as the caller keeps it.
    """
    expression = gate.spec.expression
    answer = _answer(gate, context, now=now, quarantine=quarantine or cel.Quarantine())
    transition = NextTurn(None, certain=False)
    if not answer.overran:
        transition = search_transition(expression, context, now=now)
    turn = transition.at
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
            values=_kept(answer.values),
            inputs=_recorded(expression, context, answer, now=now),
        )
    elif renewed:
        interval -= now - (gate.status.last_evaluated_at or now)
    if not renewed and transition.certain:
        interval = max(interval, AT_REST)
    return GateDecision(answer, status, min(interval, turn - now) if turn else interval)


@dataclass(frozen=True, slots=True)
class _Stage:
    """The state of the promotion behind a gate, as passed to `decide`, and how the answer ends.

    `renewed`: the answer is written again every interval. `moved`: the moment at which the answer changes differs from
    `nextTransitionAt` in the status.
    """

    passed: bool
    settled: bool
    renewed: bool
    moved: bool


def _counts_until(gate: PolicyGate, answer: Answer, turn: datetime | None, *, now: datetime) -> datetime | None:
    """Return the moment after which an answer no longer counts; None if only a change of the data ends it."""
    if not answer.ready:
        return turn
    program = cel.compile(gate.spec.expression)
    if is_perishable(program):
        window = now + freshness_window(gate.spec)
        return min(turn, window) if turn is not None else window
    if turn is None and reads_clock(program):
        return now + recheck_interval(gate.spec)
    return turn


def _recorded(expression: str, context: GateContext, answer: Answer, *, now: datetime) -> dict[str, Any] | None:
    """Return what an answer has read; None if that is too large, or if the expression could not be evaluated."""
    if answer.overran or fault(expression):
        return None
    return record(cel.compile(expression), context.scope(now))


def _kept(values: Iterable[tuple[str, str]]) -> tuple[SeenValue, ...] | None:
    first = islice(values, SEEN_VALUES)
    kept = (SeenValue(name=cut(name, _NAME_LIMIT), value=cut(value, VALUE_LIMIT)) for name, value in first)
    return tuple(kept) or None


def _answer(gate: PolicyGate, context: GateContext, *, now: datetime, quarantine: cel.Quarantine[Answer]) -> Answer:
    place = gate.metadata.uid
    version = (gate.spec.expression, context.bundle.metadata.uid, context.bundle.metadata.resource_version)
    held = quarantine.held(place, version)
    if held is not None:
        return held
    answer = evaluate(gate.spec.expression, context, now=now)
    if answer.overran:
        quarantine.hold(place, version, answer)
    return answer


def _must_be_written(gate: PolicyGate, answer: Answer, context: GateContext, *, now: datetime, stage: _Stage) -> bool:
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
    again = evaluate(gate.spec.expression, context, now=before.last_evaluated_at)
    if again.reason == before.reason:
        return False
    return not _measured_anew(again, before) or now - before.last_evaluated_at >= recheck_interval(gate.spec)


def _measured_anew(answer: Answer, before: PolicyGateStatus) -> bool:
    """Return whether only metrics have other values, which they have at each query."""
    now = {value.name: value.value for value in _kept(answer.values) or ()}
    then = {value.name: value.value for value in before.values or ()}
    differing = {name for name in {*now, *then} if now.get(name) != then.get(name)}
    return bool(differing) and all(name.startswith(f"{METRICS}.") for name in differing)
