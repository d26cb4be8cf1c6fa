"""The answers of gates and their explanations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.promotion.api import Bundle
from kardinal.promotion.policy.comparisons import requirements
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import Answer, evaluate
from kardinal.promotion.policy.soak import Soak
from tests.policy.soaks import soak_since
from tests.support import objects

TUESDAY = datetime(2026, 3, 3, 14, 30, tzinfo=UTC)
ONE, OTHER = (f"sha256:{digit * 64}" for digit in "12")
PINNED = {"name": "app", "reference": "a.example.com/b:1", "digest": ONE}
SATURDAY = datetime(2026, 3, 7, 9, 0, tzinfo=UTC)


def bundle(**fields: Any) -> Bundle:
    return Bundle.model_validate(objects.bundle("app-1", **fields))


def context(
    *, soaked: timedelta | None = timedelta(minutes=12), previous: str | None = None, **fields: Any
) -> GateContext:
    soak = soak_since(TUESDAY - soaked) if soaked is not None else Soak(unknown="dev has no upstream")
    return GateContext(bundle(**fields), "prod", "pr-review", soak=soak, previous_version=previous)


def answer(expression: str, *, now: datetime = TUESDAY, **fields: Any) -> Answer:
    return evaluate(expression, context(**fields), now=now)


@pytest.mark.parametrize(
    ("expression", "ready", "reason"),
    [
        ("!schedule.isWeekend", True, "schedule.isWeekend = false"),
        ("schedule.hour >= 15", False, "schedule.hour = 14 (threshold: >= 15)"),
        (
            "schedule.hour >= 9 && schedule.hour < 17",
            True,
            "schedule.hour = 14 (threshold: >= 9, < 17)",
        ),
        ('schedule.dayOfWeek != "Friday"', True, "schedule.dayOfWeek = Tuesday"),
        ("bundle.upstreamSoakMinutes >= 30", False, "bundle.upstreamSoakMinutes = 12 (threshold: >= 30)"),
        ("30 <= bundle.upstreamSoakMinutes", False, "bundle.upstreamSoakMinutes = 12 (threshold: >= 30)"),
        ('bundle.version == "1.1.0"', True, "bundle.version = 1.1.0"),
        ('bundle.type == "image" && bundle.name == "app-1"', True, "bundle.type = image, bundle.name = app-1"),
        ('environment.name == "prod"', True, "environment.name = prod"),
        ('environment.approval == "pr-review"', True, "environment.approval = pr-review"),
        ("false", False, "the expression is false"),
        ("true", True, "the expression is true"),
        ("has(bundle.labels.hotfix)", False, "the expression is false"),
        ("!has(previousBundle.version)", True, "the expression is true"),
        ("bundle.?labels.?tier.orValue('x') == 'x'", True, "the expression is true"),
    ],
)
def test_the_reason_shows_the_values_that_were_seen(expression: str, ready: bool, reason: str) -> None:
    found = answer(expression)
    assert (found.ready, found.reason, found.result) == (ready, reason, "pass" if ready else "fail")


def test_the_values_that_were_seen_are_kept_one_by_one() -> None:
    hours = answer("!schedule.isWeekend && schedule.hour < 9")
    assert hours.values == (("schedule.isWeekend", "false"), ("schedule.hour", "14"))
    assert answer("schedule.hour >= 9").values == (("schedule.hour", "14"),)
    forged = answer("bundle.labels.note != 'x' && schedule.hour < 9", labels={"note": "x, schedule.hour = 3"})
    assert forged.values == (("bundle.labels.note", "x, schedule.hour = 3"), ("schedule.hour", "14"))
    assert answer("has(bundle.labels.hotfix)").values == ()
    assert answer("bundle.labels.hotfix == 'yes'").values == ()


def test_labels_provenance_and_intent_can_be_read() -> None:
    found = answer(
        'bundle.labels["team"] == "web" && bundle.provenance.author == "ci" && bundle.intent.target == "prod"',
        labels={"team": "web"},
        provenance={"author": "ci"},
        intent={"target": "prod"},
    )
    assert found.ready
    assert found.reason == "bundle.labels.team = web, bundle.provenance.author = ci, bundle.intent.target = prod"


def test_the_previous_version_of_the_environment_can_be_read() -> None:
    assert answer("bundle.version != previousBundle.version", previous="1.0.0").ready


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("bundle.upstreamSoakMinutes >= 30", "dev has no upstream"),
        ("bundle.upstreamSoakMinutes < 60", "dev has no upstream"),
        (
            'previousBundle.version == "1"',
            "no other Bundle has been Verified in prod: previousBundle.version is not set",
        ),
        ('bundle.labels.tier == "gold"', "bundle.labels.tier is not set"),
        ('bundle.provenance.author != "x"', "bundle.provenance.author is not set"),
        ("schedule.isWeekend &&", "the expression is not valid CEL"),
        ("nonsense(1)", "the expression is not valid CEL"),
        ('delegation.status == "ok"', "delegation is not read here"),
        ("externalApproval.change.granted", "there is no attribute externalApproval.change.granted"),
        ("metrics.errorRate < 0.1", 'metrics.errorRate is no value: write metrics["errorRate"].value'),
        ("has(metrics.errorRate) || true", 'write metrics["errorRate"].value'),
        ("metrics.success-rate >= 0.99", 'metrics.success-rate is no value: write metrics["success-rate"].value'),
        ("metrics.success-rate.value >= 0.99", 'metrics.success-rate is no value: write metrics["success-rate"].value'),
        ("metrics[bundle.name].value > 1", 'metrics is read as a whole: name the check, as in metrics["success-rate"]'),
        ('metrics["a"].at > 1', "there are: metrics.a.value, metrics.a.status, metrics.a.ageSeconds"),
        ('!has(metrics["a"].value)', "metrics is not read here"),
        ("contracts.ok", "as literals"),
        ("targetDrift.unreconciled", "targetDrift is not read here"),
        ("bundle.vresion == 'x'", "there is no attribute bundle.vresion; did you mean bundle.version?"),
        ("schedul.isWeekend", "did you mean schedule.isWeekend?"),
        ("bundle.provenance.autor == 'x'", "did you mean bundle.provenance.author?"),
        ("bundle.?annotations.?x.orValue('') == ''", "there is no attribute bundle.annotations"),
        ("schedule.hour", "it must be true or false"),
        ("bundle.labels", "it must be true or false"),
        ("schedule.hour < 'x'", "does not take (int, string)"),
        ("1 / 0 == 1", "division by zero"),
    ],
)
def test_undecidable_gate_is_closed_and_says_why(expression: str, says: str) -> None:
    found = answer(expression, soaked=None)
    assert (found.ready, found.result) == (False, "error")
    assert says in found.reason


@pytest.mark.parametrize(
    ("expression", "write"),
    [
        ("bundle.labels.hotfix == true", '== "true"'),
        ("true == bundle.labels.hotfix", '== "true"'),
        ('bundle.labels["hotfix"] == true', '== "true"'),
        ("schedule.isWeekend && bundle.labels.hotfix == 1", '== "1"'),
    ],
)
@pytest.mark.parametrize("labels", [{"hotfix": "true"}, {}])
def test_comparing_a_label_with_something_that_is_not_text_is_explained(
    expression: str, write: str, labels: dict[str, str]
) -> None:
    found = answer(expression, labels=labels)
    assert not found.ready
    assert "is never true: " in found.reason
    assert write in found.reason


def test_the_hint_is_not_given_where_it_does_not_matter() -> None:
    assert "labels are strings" not in answer('bundle.labels.hotfix == "true"', labels={"hotfix": "no"}).reason


def test_the_schedule_is_utc() -> None:
    assert answer("schedule.isWeekend", now=SATURDAY).ready
    assert answer("schedule.isWeekend", now=SATURDAY - timedelta(hours=9, microseconds=1)).ready is False
    assert answer('schedule.dayOfWeek == "Saturday" && schedule.hour == 9', now=SATURDAY).ready


def test_a_soak_just_below_its_threshold_does_not_read_as_reached() -> None:
    found = answer("bundle.upstreamSoakMinutes >= 30", soaked=timedelta(minutes=30) - timedelta(milliseconds=1))
    assert found.reason == "bundle.upstreamSoakMinutes = 29.99 (threshold: >= 30)"
    assert answer("bundle.upstreamSoakMinutes >= 30", soaked=timedelta(minutes=30)).ready


def test_a_clock_that_is_behind_the_verification_means_no_soak_rather_than_a_negative_one() -> None:
    assert not answer("bundle.upstreamSoakMinutes >= 0.01", soaked=timedelta(minutes=-5)).ready


def test_a_long_reason_is_cut() -> None:
    labels = {f"l{index}": "v" * 63 for index in range(30)}
    expression = " && ".join(f'bundle.labels.l{index} != ""' for index in range(30))
    assert len(answer(expression, labels=labels).reason) == 500


def test_text_of_an_expression_never_comes_back_as_a_library_message() -> None:
    reason = answer("schedule.hour > bundle.labels.secret", labels={"secret": "s3cret"}).reason
    assert "s3cret" not in reason


def _tags(*, checked: bool = False, **known: Any) -> GateContext:
    """Return the context of a Bundle before prod, with what is known of its tag."""
    stored = objects.bundle("app-1", image="a.example.com/b", tag="1")
    entry = {"state": "Pending", **({"tagsCheckedAt": TUESDAY.isoformat()} if checked else {})}
    image = {"reference": "a.example.com/b:1", "resolvedAt": TUESDAY.isoformat(), **known}
    stored["status"] = {"environments": {"dev": {"state": "Verified"}, "prod": entry}}
    stored["status"] |= {"artifacts": [image]} if known else {}
    return GateContext(Bundle.model_validate(stored), "prod", "auto")


@pytest.mark.parametrize(
    ("context", "wanted"),
    [
        (_tags(digest=ONE, checked=True), Answer(True, "bundle.tagMoved = false", "pass")),
        (_tags(digest=ONE, movedTo=OTHER, checked=True), Answer(False, "bundle.tagMoved = true", "fail")),
        (_tags(digest=ONE, movedTo=OTHER), Answer(False, "bundle.tagMoved = true", "fail")),
        (_tags(digest=ONE), Answer(False, "tags are looked up again when prod is about to start", "error")),
        (_tags(digest=ONE, message="it is silent"), Answer(False, "it is silent", "error")),
        (_tags(message="it is silent", checked=True), Answer(False, "it is silent", "error")),
        (replace(_tags(digest=ONE), first=True), Answer(True, "bundle.tagMoved = false", "pass")),
        (replace(_tags(message="it is silent"), first=True), Answer(False, "it is silent", "error")),
        (replace(_tags(digest=ONE, message="it is silent"), first=True), Answer(False, "it is silent", "error")),
        (
            replace(_tags(digest=ONE, message="it is silent", checked=True), first=True),
            Answer(True, "bundle.tagMoved = false", "pass"),
        ),
        (
            _tags(),
            Answer(False, "tags were not looked up when the Bundle started: that needs --allow-registries", "error"),
        ),
        (
            GateContext(bundle(artifacts={"images": [PINNED]}), "prod", "auto"),
            Answer(True, "bundle.tagMoved = false", "pass"),
        ),
    ],
    ids=[
        "stayed",
        "moved",
        "moved before an earlier environment",
        "not looked up yet",
        "no answer now",
        "no answer ever",
        "the first environment",
        "the first without an answer",
        "a recorded digest without an answer of today",
        "an answer before another environment got none",
        "without the flag",
        "a digest",
    ],
)
def test_a_gate_on_moved_tags_is_open_only_where_it_is_known_that_none_has(
    context: GateContext, wanted: Answer
) -> None:
    assert replace(evaluate("!bundle.tagMoved", context, now=TUESDAY), values=()) == wanted


@pytest.mark.parametrize(
    ("expression", "needed"),
    [
        (
            "!schedule.isWeekend && schedule.hour >= 9 && 17 > schedule.hour",
            ["schedule.isWeekend == false", "schedule.hour >= 9", "schedule.hour < 17"],
        ),
        ("bundle.emergency", ["bundle.emergency == true"]),
        ("bundle.emergency || schedule.hour < 9", []),
        ("schedule.hour < 9 && (bundle.emergency || schedule.isWeekend)", ["schedule.hour < 9"]),
        ('bundle.labels["a"] == "b"', ['bundle.labels.a == "b"']),
        ("!(schedule.hour < 9)", []),
        ("has(bundle.labels.a)", []),
        ("!has(bundle.labels.a)", []),
        ("bundle.labels.all(label, label != 'x')", []),
        ("true", []),
    ],
)
def test_requirements_are_the_terms_that_an_expression_cannot_do_without(expression: str, needed: list[str]) -> None:
    assert [str(each) for each in requirements(expression)] == needed
