"""Recorded inputs give the answer that the controller gave, and a simulation agrees with it over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal import cel
from kardinal.promotion.api import Bundle, PolicyGate
from kardinal.promotion.api.evidence import EVIDENCE_BYTES, Evidence, GateResult, bounded
from kardinal.promotion.policy.attestation import NOT_ATTESTED, Attestation, TokenScope
from kardinal.promotion.policy.calendar import Calendar
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.decision import decide
from kardinal.promotion.policy.evaluate import evaluate
from kardinal.promotion.policy.inputs import Input
from kardinal.promotion.policy.recording import RECORDED_BYTES, RecordedContext, evaluate_recorded, record
from kardinal.promotion.policy.simulation import all_open, intervals
from kardinal.promotion.policy.soak import Soak
from tests.policy.soaks import soak_since
from tests.support import objects

NOW = datetime(2026, 3, 3, 14, 30, 15, tzinfo=UTC)


UTC_CALENDAR = Calendar()


def context(calendar: Calendar = UTC_CALENDAR, **fields: Any) -> GateContext:
    labels = fields.pop("labels", None)
    bundle = Bundle.model_validate(objects.bundle("app-1", labels=labels))
    return GateContext(bundle, "prod", "auto", calendar=calendar, **fields)


def again(expression: str, live: GateContext, *, calendar: Calendar | None = None) -> RecordedContext:
    """Return the context that was recorded at NOW and has been through JSON."""
    recorded = record(cel.compile(expression), live.scope(NOW))
    assert recorded is not None
    stored = orjson.loads(orjson.dumps(recorded))
    return RecordedContext(live.bundle, "prod", "auto", calendar or live.calendar, stored, NOW)


terms = st.one_of(
    st.builds("bundle.upstreamSoakMinutes {} {}".format, st.sampled_from(["<", ">="]), st.integers(0, 300)),
    st.builds("schedule.hour {} {}".format, st.sampled_from(["<", ">="]), st.integers(0, 24)),
    st.sampled_from(
        [
            'upstream["staging"].version == "1.0.0"',
            "has(upstream.staging)",
            "!has(upstream.test)",
            'bundle.labels.tier == "gold"',
            "!has(bundle.labels.tier)",
            '"prod" in bundle.attested.maySkip',
            'previousBundle.version != "1.0.0"',
            "schedule.isHoliday",
            'schedule.inWindow("Mon-Fri 09:00-16:00")',
            'environment.name == "prod" && bundle.version == "1.1.0"',
        ]
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    parts=st.lists(terms, min_size=1, max_size=4),
    junction=st.sampled_from([" && ", " || "]),
    soaked=st.one_of(st.none(), st.floats(0, 400)),
    staging=st.one_of(st.none(), st.sampled_from(["1.0.0", "2.0.0"])),
    tier=st.one_of(st.none(), st.sampled_from(["gold", "tin"])),
    may_skip=st.one_of(st.none(), st.lists(st.sampled_from(["prod", "dev"]))),
    previous=st.one_of(st.none(), st.just("1.0.0")),
    holiday=st.integers(-1, 2),
    zone=st.sampled_from(["UTC", "Europe/Zurich", "Asia/Kathmandu"]),
    later=st.integers(0, 3000),
)
def test_simulation_and_controller_agree_on_recorded_inputs(
    *,
    parts: list[str],
    junction: str,
    soaked: float | None,
    staging: str | None,
    tier: str | None,
    may_skip: list[str] | None,
    previous: str | None,
    holiday: int,
    zone: str,
    later: int,
) -> None:
    expression = junction.join(parts)
    live = context(
        Calendar(zone, frozenset({(NOW + timedelta(days=holiday)).date()})),
        labels={"tier": tier} if tier else None,
        soak=Soak(unknown="-") if soaked is None else soak_since(NOW - timedelta(minutes=soaked)),
        previous_version=previous,
        attestation=NOT_ATTESTED if may_skip is None else Attestation(TokenScope("ci", tuple(may_skip))),
        inputs={"upstream": Input({"staging": {"version": staging}} if staging else {})},
    )
    then = evaluate(expression, live, now=NOW)
    recorded = again(expression, live)
    assert evaluate_recorded(expression, recorded, now=NOW).ready == then.ready
    # Holidays are read anew for another time.
    moving = RecordedContext(
        live.bundle, "prod", "auto", live.calendar, {**recorded.recorded, "schedule": {"isHoliday": None}}, NOW
    )
    at = NOW + timedelta(minutes=later)
    expected = evaluate(expression, live, now=at)
    assert evaluate_recorded(expression, moving, now=at).ready == expected.ready
    found = intervals(expression, moving, start=NOW, end=NOW + timedelta(days=4))
    (holding,) = (each for each in found if each.start <= at < each.end)
    assert holding.open == expected.ready


def test_decision_keeps_what_its_answer_has_read() -> None:
    expression = 'bundle.labels.tier == "gold" && bundle.upstreamSoakMinutes >= 30 && schedule.hour > 3'
    gate = PolicyGate.model_validate(objects.gate("g", expression))
    live = context(labels={"tier": "gold"}, soak=soak_since(NOW - timedelta(minutes=45)))
    status = decide(gate, live, now=NOW, passed=False).status
    assert status is not None
    labels = {"kardinal.io/pipeline": "my-app", "tier": "gold"}
    assert status.inputs == {"bundle": {"labels": labels, "upstreamSoakMinutes": 45.0}}


def test_another_policy_that_reads_more_has_no_answer() -> None:
    recorded = again("bundle.upstreamSoakMinutes >= 0", context(soak=soak_since(NOW)))
    for expression, missing in [
        ("!has(bundle.labels.hold)", "bundle.labels"),
        ("!has(upstream.staging)", "upstream"),
        ("!schedule.isHoliday", "schedule.isHoliday"),
    ]:
        answer = evaluate_recorded(expression, recorded, now=NOW)
        assert (answer.ready, answer.reason) == (False, f"{missing} was not recorded")


def test_record_that_is_too_large_is_left_out() -> None:
    labels = {f"label-{number}": "x" * 60 for number in range(RECORDED_BYTES // 60)}
    assert record(cel.compile("has(bundle.labels.x)"), context(labels=labels).scope(NOW)) is None


def test_evidence_gives_up_inputs_before_anything_else() -> None:
    results = [
        GateResult(name=f"g{number}", result="pass", reason="r" * 100, inputs={"bundle": {"labels": {"a": "x" * 1900}}})
        for number in range(6)
    ]
    kept = bounded(Evidence(policy_gates=tuple(results), images=("app:1",)))
    assert len(orjson.dumps(kept.to_json())) <= EVIDENCE_BYTES
    assert [gate.inputs is not None for gate in kept.policy_gates] == [True, True, False, False, False, False]
    assert (kept.images, {gate.reason for gate in kept.policy_gates}) == (("app:1",), {"r" * 100})


def test_gates_are_open_together_where_each_is() -> None:
    day = NOW.replace(hour=0, minute=0, second=0)
    end = day + timedelta(days=1)
    early, late = (
        intervals(expression, context(), start=day, end=end)
        for expression in ("schedule.hour < 12", 'schedule.inWindow("10:30-20:00")')
    )
    together = all_open([early, late], start=day, end=end)
    shown = [(f"{each.start:%H:%M}", f"{each.end:%H:%M}", each.open) for each in together]
    assert shown == [("00:00", "10:30", False), ("10:30", "12:00", True), ("12:00", "00:00", False)]
    assert [each.open for each in all_open([], start=day, end=end)] == [True]


@pytest.mark.parametrize("days", [1, 30])
def test_interval_beyond_the_search_is_found_in_steps(days: int) -> None:
    calendar = Calendar(holidays=frozenset({(NOW + timedelta(days=days)).date()}))
    found = intervals("schedule.isHoliday", context(calendar), start=NOW, end=NOW + timedelta(days=40))
    assert [each.open for each in found] == [False, True, False]
