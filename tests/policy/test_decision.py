"""When a gate speaks and when it is silent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal import cel
from kardinal.promotion.api import Bundle, PolicyGate
from kardinal.promotion.api.policy_gate import SEEN_VALUES, PolicyGateStatus
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.decision import GateDecision, decide
from kardinal.promotion.policy.evaluate import Answer
from tests.policy.soaks import soak_since
from tests.support import objects

NOW = datetime(2026, 3, 3, 14, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def context(*, soaked: timedelta = timedelta(), **fields: Any) -> GateContext:
    bundle = Bundle.model_validate(objects.bundle("app-1", **fields))
    return GateContext(bundle, "prod", "auto", soak=soak_since(NOW - soaked))


def gate(expression: str, status: PolicyGateStatus | None = None, **spec: Any) -> PolicyGate:
    made = PolicyGate.model_validate(objects.gate("g", expression, **{"recheckInterval": "5m", **spec}))
    return made.model_copy(update={"status": status or PolicyGateStatus()})


def decision(
    expression: str,
    before: PolicyGateStatus | None = None,
    *,
    after: timedelta = timedelta(),
    passed: bool = False,
    seen: GateContext | None = None,
) -> GateDecision:
    return decide(gate(expression, before), seen or context(), now=NOW + after, passed=passed)


def first(expression: str, seen: GateContext | None = None) -> PolicyGateStatus:
    status = decision(expression, seen=seen).status
    assert status is not None
    return status


SOAK = "bundle.upstreamSoakMinutes >= 30"
DEAR_SEARCH = " || ".join(f"schedule.hour + {number} == 99 && schedule.isWeekend" for number in range(40))
"""A condition whose moments together take more than the budget of one evaluation."""


@pytest.mark.parametrize("passed", [False, True])
@pytest.mark.parametrize("expression", ["true", "false", SOAK, "broken("])
def test_the_first_answer_is_always_written(expression: str, passed: bool) -> None:
    status = decision(expression, passed=passed).status
    assert status is not None
    assert status.last_evaluated_at == NOW
    assert status.ready is (expression == "true")


def test_a_closed_gate_is_silent_while_only_time_passes() -> None:
    before = first(SOAK)
    assert before.next_transition_at == NOW + 30 * MINUTE
    for minutes in (1, 7, 29):
        assert decision(SOAK, before, after=minutes * MINUTE).status is None


def test_a_gate_speaks_at_the_moment_time_turns_it() -> None:
    before = first(SOAK)
    waited = decision(SOAK, before, after=28 * MINUTE)
    assert waited.look_again == 2 * MINUTE
    status = decision(SOAK, before, after=30 * MINUTE).status
    assert status is not None
    # What opened it may end at any moment: the answer counts for two intervals.
    assert (status.ready, status.next_transition_at) == (True, NOW + 40 * MINUTE)


def test_a_closed_gate_speaks_when_something_other_than_time_has_changed() -> None:
    expression = 'bundle.labels.tier == "gold"'
    before = first(expression, context(labels={"tier": "tin"}))
    assert decision(expression, before, seen=context(labels={"tier": "tin"})).status is None
    status = decision(expression, before, after=MINUTE, seen=context(labels={"tier": "silver"})).status
    assert status is not None
    assert (status.ready, status.reason) == (False, "bundle.labels.tier = silver")


def test_a_soak_that_begins_anew_is_something_other_than_time() -> None:
    before = first(SOAK, context(soaked=20 * MINUTE))
    assert decision(SOAK, before, after=MINUTE, seen=context(soaked=-MINUTE)).status is not None


def test_an_open_gate_is_renewed_every_interval() -> None:
    before = first("true")
    early = decision("true", before, after=4 * MINUTE)
    assert (early.status, early.look_again) == (None, MINUTE)
    renewed = decision("true", before, after=5 * MINUTE).status
    assert renewed is not None
    assert renewed.last_evaluated_at == NOW + 5 * MINUTE


def test_an_open_gate_is_not_renewed_once_its_step_exists() -> None:
    before = first("true")
    for minutes in (5, 50, 500):
        late = decision("true", before, after=minutes * MINUTE, passed=True)
        assert (late.status, late.look_again) == (None, 60 * MINUTE)


@pytest.mark.parametrize("passed", [False, True])
def test_a_change_of_the_answer_is_always_written(passed: bool) -> None:
    open_ = context(labels={"ok": "yes"})
    closed = context(labels={"ok": "no"})
    expression = 'bundle.labels.ok == "yes"'
    status = decision(expression, first(expression, open_), passed=passed, seen=closed).status
    assert status is not None
    assert status.ready is False
    status = decision(expression, status, passed=passed, seen=open_).status
    assert status is not None
    assert status.ready is True


def test_a_settled_gate_does_not_tell_of_changed_values() -> None:
    expression = 'bundle.labels.tier != "tin"'
    before = first(expression, context(labels={"tier": "gold"}))
    assert decision(expression, before, passed=True, seen=context(labels={"tier": "silver"})).status is None


CLOCK = "schedule.hour < 15"
UNKNOWN_TURN = "schedule.hour < 24"


@pytest.mark.parametrize("passed", [False, True])
def test_an_answer_that_the_clock_gave_counts_until_its_turn_and_is_written_again_then(passed: bool) -> None:
    before = first(CLOCK)
    assert (before.ready, before.next_transition_at) == (True, NOW + 60 * MINUTE)
    assert decision(CLOCK, before, after=4 * MINUTE, passed=passed).status is None
    status = decision(CLOCK, before, after=60 * MINUTE, passed=passed).status
    assert status is not None
    assert (status.ready, status.next_transition_at) == (False, NOW + 10 * 60 * MINUTE)


def test_answer_that_another_term_keeps_open_is_written_at_its_turn() -> None:
    expression = f'{CLOCK} || bundle.labels.go == "yes"'
    free = context(labels={"go": "no"})
    open_ = context(labels={"go": "yes"})
    before = first(expression, free)
    assert before.next_transition_at == NOW + 60 * MINUTE
    status = decision(expression, before, after=60 * MINUTE, passed=True, seen=open_).status
    assert status is not None
    assert status.ready
    assert status.next_transition_at == NOW + 65 * MINUTE


def test_an_answer_of_the_clock_whose_turn_is_not_found_counts_until_it_is_evaluated_again() -> None:
    before = first(UNKNOWN_TURN)
    assert (before.ready, before.next_transition_at) == (True, NOW + 5 * MINUTE)
    early = decision(UNKNOWN_TURN, before, after=4 * MINUTE, passed=True)
    assert (early.status, early.look_again) == (None, MINUTE)
    status = decision(UNKNOWN_TURN, before, after=5 * MINUTE, passed=True).status
    assert status is not None
    assert status.next_transition_at == NOW + 10 * MINUTE


def test_an_answer_that_rests_on_a_soak_is_renewed_while_effects_are_to_come() -> None:
    soaked = context(soaked=45 * MINUTE)
    before = first(SOAK, soaked)
    assert before.next_transition_at == NOW + 10 * MINUTE
    status = decision(SOAK, before, after=5 * MINUTE, passed=True, seen=soaked).status
    assert status is not None
    assert status.next_transition_at == NOW + 15 * MINUTE


@pytest.mark.parametrize("expression", [CLOCK, UNKNOWN_TURN, SOAK])
def test_an_answer_after_the_last_effect_is_left_alone_unless_it_turns(expression: str) -> None:
    soaked = context(soaked=45 * MINUTE)
    before = first(expression, soaked)
    settled = decide(gate(expression, before), soaked, now=NOW + 59 * MINUTE, passed=True, settled=True)
    assert settled.status is None


@pytest.mark.parametrize(
    ("expression", "look_again"),
    [
        ('schedule.dayOfWeek == "Sunday"', 60 * MINUTE),
        ('bundle.labels.tier == "gold"', 60 * MINUTE),
        ("bundle.upstreamSoakMinutes >= 600 && !schedule.isWeekend", 60 * MINUTE),
        ("bundle.upstreamSoakMinutes >= 7", 7 * MINUTE),
        ("bundle.upstreamSoakMinutes / 2.0 >= 600.0", 5 * MINUTE),
        ("[now(), now()].max() < now()", 5 * MINUTE),
        ("schedule.isHoliday", 5 * MINUTE),
        ('metrics["errors"].value > 5', 5 * MINUTE),
        (DEAR_SEARCH, 5 * MINUTE),
    ],
)
def test_closed_gate_whose_turn_is_certain_is_looked_at_each_hour(expression: str, look_again: timedelta) -> None:
    assert decision(expression, first(expression)).look_again == look_again


def test_an_interval_that_is_absurdly_short_or_long_is_survived() -> None:
    hasty = decide(gate("true", recheckInterval="1ms"), context(), now=NOW, passed=False)
    assert hasty.look_again == timedelta(seconds=1)
    for expression in ("true", "now() < now()", "schedule.hour < 24", "bundle.upstreamSoakMinutes >= 0"):
        patient = decide(gate(expression, recheckInterval="999999999h"), context(), now=NOW, passed=False)
        assert patient.look_again == timedelta(days=365)


DEAR = "['x', 'y'].exists(a, bundle.labels.exists(b, bundle.labels.exists(c, a == b + c)))"


def labelled(number: int, *, version: str) -> GateContext:
    seen = context(labels={f"l{index}": "x" for index in range(number)})
    metadata = seen.bundle.metadata.model_copy(update={"resource_version": version})
    return GateContext(seen.bundle.model_copy(update={"metadata": metadata}), "prod", "auto")


def test_a_gate_that_overran_is_not_evaluated_again_until_it_or_its_bundle_changes() -> None:
    quarantine: cel.Quarantine[Answer] = cel.Quarantine()

    def ask(expression: str, seen: GateContext, before: PolicyGateStatus | None = None) -> GateDecision:
        return decide(gate(expression, before), seen, now=NOW, passed=False, quarantine=quarantine)

    overran = ask(DEAR, labelled(60, version="1"))
    assert overran.status is not None
    assert overran.status.ready is False
    assert "takes more than 100000 steps" in (overran.status.reason or "")
    assert ask(DEAR, labelled(1, version="1"), overran.status) == GateDecision(
        overran.answer, None, overran.look_again
    ), "the data has not changed as far as its version says, so nothing was evaluated"
    assert ask(DEAR, labelled(1, version="2"), overran.status).answer.overran is False
    assert ask(DEAR, labelled(60, version="1"), overran.status).answer.overran
    assert ask("true", labelled(60, version="1"), overran.status).answer.ready


def test_an_overrun_in_one_gate_is_none_in_another_that_says_the_same() -> None:
    quarantine: cel.Quarantine[Answer] = cel.Quarantine()
    mine = gate(DEAR)
    other = gate(DEAR)
    other = other.model_copy(update={"metadata": other.metadata.model_copy(update={"uid": "other"})})
    assert decide(mine, labelled(60, version="1"), now=NOW, passed=False, quarantine=quarantine).answer.overran
    assert not decide(other, labelled(1, version="1"), now=NOW, passed=False, quarantine=quarantine).answer.overran


def test_the_values_of_an_answer_are_kept_within_bounds() -> None:
    key = "x" * 300
    labels = {key: "1", "note": "y" * 200, **{f"l{index}": "1" for index in range(40)}}
    seen = context(labels=labels)
    status = first(f'bundle.labels["{key}"] == "1" && bundle.labels.note != ""', seen)
    kept = [(value.name, value.value) for value in status.values or ()]
    assert [len(name) for name, _ in kept] == [256, len("bundle.labels.note")]
    assert len(kept[1][1]) == 64
    many = first(" && ".join(f'bundle.labels.l{index} == "1"' for index in range(40)), seen)
    assert len(many.values or ()) == SEEN_VALUES
    assert first("true").values is None
    assert PolicyGateStatus.model_validate(many.to_json()) == many
