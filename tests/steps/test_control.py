"""The fields that steer a step are executed as written, or refused at the field that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.config import InvalidConfig, resolved
from kardinal.promotion.steps.expressions import (
    EXPRESSIONS_LIMIT,
    OUTPUTS_LIMIT,
    ExpressionError,
    OutputsTooLarge,
    check_outputs,
    holds,
    rendered,
    scope_of,
)
from kardinal.promotion.steps.sequence import planned, sequence_problems
from tests.support.registry import REGISTRY

URL = "https://tests.example.com/"
STEP = PromotionStep.model_validate(
    {
        "metadata": {"name": "app-1-dev"},
        "spec": {
            "pipeline": "app",
            "environment": "dev",
            "bundleRef": "app-1",
            "path": "environments/dev",
            "git": {"url": "https://example.com/repo"},
        },
    }
)
BUNDLE = Bundle.model_validate(
    {
        "metadata": {"name": "app-1", "labels": {"hotfix": "true"}},
        "spec": {"artifacts": {"images": [{"name": "app", "reference": "ghcr.io/acme/app:1.2.0"}]}},
    }
)
SCOPE = scope_of(STEP, BUNDLE, {"tests": {"passed": True, "count": 3, "report": "r-1", "all": ["a", "b"]}})


def sequence(*steps: str | dict[str, Any]) -> list[StepSpec]:
    return [StepSpec.model_validate({"uses": step} if isinstance(step, str) else step) for step in steps]


def refusals(*steps: str | dict[str, Any], pr: bool = False) -> list[tuple[str, str]]:
    found = sequence_problems(
        sequence(*steps), approval="auto", pr=pr, capabilities=REGISTRY.providers["local"], table=REGISTRY.steps
    )
    return [(problem.field, problem.message) for problem in found]


def written(*middle: str | dict[str, Any], edit: dict[str, Any] | None = None) -> list[str | dict[str, Any]]:
    """Return a sequence with steps between its edit and its commit."""
    edits = {"uses": "kustomize-set-image", **(edit or {})}
    return ["git-clone", edits, *middle, "git-commit", "git-push", "health-check"]


def custom(name: str = "tests", **fields: Any) -> dict[str, Any]:
    return {"uses": name, **fields, "config": {"url": URL, **fields.get("config", {})}}


@pytest.mark.parametrize(
    "steps",
    [
        written(custom(**{"if": 'environment.name == "dev"'})),
        written(custom(continueOnError=True, timeout="10m", retry={"attempts": 3})),
        written(custom(), edit={"if": 'bundle.type == "image"', "as": "images"}),
        written(custom(**{"as": "unit"}), custom(config={"id": "${outputs.unit.id}"}, **{"as": "load"})),
        written(custom(), custom("notify", **{"if": "has(outputs.tests) && outputs.tests.ok"})),
        written(custom(config={"commit": '${outputs["git-clone"].commit}'})),
        written(custom(config={"text": "costs $${5}", "all": "${outputs}"})),
        ["git-clone", "kustomize-set-image", "git-commit", {"uses": "git-push", "timeout": "5m"}, "health-check"],
    ],
)
def test_steps_may_be_steered(steps: list[str | dict[str, Any]]) -> None:
    assert refusals(*steps) == []


@pytest.mark.parametrize("name", ["git-clone", "git-commit", "git-push", "open-pr", "merge-pr", "health-check"])
@pytest.mark.parametrize(("field", "value"), [("if", "true"), ("continueOnError", True)])
def test_steps_that_the_proof_needs_are_not_skippable(name: str, field: str, value: Any) -> None:
    names = ["git-clone", "kustomize-set-image", "git-commit", "git-push", "open-pr", "merge-pr", "health-check"]
    index = names.index(name)
    steps = [{"uses": each, **({field: value} if each == name else {})} for each in names]
    ((where, message),) = refusals(*steps, pr=True)
    assert where == f"steps[{index}].{field}"
    assert name in message


def test_an_edit_may_be_left_out_and_may_not_fail_unnoticed() -> None:
    assert refusals(*written(edit={"if": "true"})) == []
    ((where, message),) = refusals(*written(edit={"continueOnError": True}))
    assert where == "steps[1].continueOnError"
    assert "it changes files" in message


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("outputs.tests.ok == ", "not valid CEL"),
        ("outputs.test.ok", "no step before leaves outputs as test; did you mean tests?"),
        ("outputs.later.ok", "outputs.later is not there yet: the step must stand before"),
        ("bundel.version == '1'", "there is no bundel; did you mean bundle?"),
        ("bundle.versoin == '1'", "there is no bundle.versoin; did you mean bundle.version?"),
        ("bundle.labels.hotfix == 'true'", "there is no bundle.labels"),
        ("environment.nam == 'dev'", "did you mean environment.name?"),
        ("now() > timestamp('2026-01-01T00:00:00Z')", "it reads the time"),
        ("schedule.isWeekend", "there is no schedule"),
    ],
)
def test_an_expression_that_can_never_be_evaluated_is_refused(condition: str, says: str) -> None:
    steps = written(custom(), custom("notify", **{"if": condition}), custom("later"))
    ((where, message),) = refusals(*steps)
    assert where == "steps[3].if"
    assert says in message
    ((where, message),) = refusals(
        *written(custom(), custom("notify", config={"a": {"b": [f"${{{condition}}}"]}}), custom("later"))
    )
    assert where == "steps[3].config.a.b[0]"
    assert says in message


@pytest.mark.parametrize(
    ("step", "field", "says"),
    [
        (custom(**{"timeout": "0s"}), "timeout", "longer than nothing"),
        (custom(config={"timeout": "0s"}), "config.timeout", "longer than nothing"),
        (custom(timeout="1m", config={"timeout": "1m"}), "config.timeout", "keep one"),
        (custom(config={"timeout": "${outputs.x}"}), "config.timeout", "without expressions"),
        (custom(config={"timeot": "5m"}), "config", "did you mean timeout?"),
        (custom(config={"secretref": {"name": "x"}}), "config", "did you mean secretRef?"),
        (custom(config={"a": "${unfinished"}), "config.a", "`${` without its `}`"),
        (custom(config={"${x}": "a"}), "config.${x}", "cannot stand in a key"),
        (custom(config={"url": 3}), "config.url", "valid string"),
        ({"uses": "tests", "config": {}}, "uses", "needs config.url"),
        ({"uses": "git-pusch", "config": {}}, "uses", "did you mean 'git-push'?"),
        ({"uses": "git-commit", "config": {"url": URL}}, "config.url", "takes no config"),
    ],
)
def test_a_wrong_field_is_named(step: dict[str, Any], field: str, says: str) -> None:
    where, message = refusals(*written(step))[0]
    assert where.removeprefix("steps[2].") == field
    assert says in message


def test_the_proof_has_a_time_of_its_own() -> None:
    ((where, message),) = refusals({"uses": "health-check", "timeout": "5m"})
    assert (where, message) == ("steps[0].timeout", "a proof has its own time: set health.timeout")


@pytest.mark.parametrize(
    ("steps", "index"),
    [
        ((custom(), custom()), 3),
        ((custom(**{"as": "unit"}), custom(**{"as": "unit"})), 3),
        ((custom(), custom("other", **{"as": "tests"})), 3),
    ],
)
def test_outputs_have_names_of_their_own(steps: tuple[dict[str, Any], ...], index: int) -> None:
    ((where, message),) = refusals(*written(*steps))
    assert where == f"steps[{index}].as"
    assert "give each a name of its own" in message


def test_expressions_are_bounded_together() -> None:
    many = {f"k{index}": f"${{'{'x' * 100}{index}'}}" for index in range(EXPRESSIONS_LIMIT // 100)}
    ((where, message),) = refusals(*written(custom(config=many)))
    assert where == "steps"
    assert "more than 4,096 characters" in message


def test_literal_values_beside_an_expression_are_validated_at_once() -> None:
    edit = {"uses": "kustomize-set-image", "config": {"path": "${outputs.tests.report}", "pth": "x"}}
    assert [field for field, _ in refusals(*written(custom(), edit))] == ["steps[3].config.pth"]
    edit["config"] = {"path": "${outputs.tests.report}"}
    assert refusals(*written(custom(), edit)) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${outputs.tests.count}", 3),
        ("${outputs.tests.passed}", True),
        ("${outputs.tests.all}", ["a", "b"]),
        ("${outputs.tests}", {"passed": True, "count": 3, "report": "r-1", "all": ["a", "b"]}),
        ("run ${outputs.tests.count} of ${bundle.version}", "run 3 of 1.2.0"),
        ("${environment.path}/x", "environments/dev/x"),
        ("$${outputs.tests.count}", "${outputs.tests.count}"),
        ("${bundle.artifacts.images[0].name}", "app"),
        ("plain", "plain"),
    ],
)
def test_a_string_that_is_one_expression_keeps_the_type_of_its_value(text: str, value: object) -> None:
    assert rendered({"a": [{"b": text}]}, SCOPE) == {"a": [{"b": value}]}


def test_values_are_not_evaluated_again() -> None:
    scope = scope_of(STEP, BUNDLE, {"tests": {"x": "${bundle.name}"}})
    assert rendered({"a": "${outputs.tests.x}", "b": "is ${outputs.tests.x}"}, scope) == {
        "a": "${bundle.name}",
        "b": "is ${bundle.name}",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${outputs.unit.ok}", "config.a: outputs.unit.ok is not set. A step that was skipped"),
        ("is ${outputs.tests.all}", "a list, a map or null cannot stand in the middle"),
        ("${outputs.tests.count + 'x'}", "config.a: "),
    ],
)
def test_an_expression_without_a_value_says_where(text: str, says: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        rendered({"a": text}, SCOPE)
    assert says in str(caught.value)


def test_a_condition_is_true_or_false() -> None:
    assert holds("outputs.tests.passed", SCOPE)
    assert not holds("outputs.?unit.?ok.orValue(false)", SCOPE)
    with pytest.raises(ExpressionError, match="must be true or false"):
        holds("outputs.tests.count", SCOPE)


def test_work_without_an_end_is_stopped_by_its_budget() -> None:
    scope = scope_of(STEP, BUNDLE, {"tests": {"all": list(range(1000))}})
    with pytest.raises(ExpressionError, match="steps"):
        holds("outputs.tests.all.all(a, outputs.tests.all.all(b, outputs.tests.all.all(c, a + b + c >= 0)))", scope)


def test_a_config_is_validated_with_its_values() -> None:
    (step,) = planned(
        sequence({"uses": "kustomize-set-image", "config": {"path": "${outputs.tests.report}"}}), REGISTRY.steps
    )
    assert resolved(step, SCOPE).config.model_dump()["path"] == "r-1"
    with pytest.raises(InvalidConfig, match=r"config\.path: .*without \.\. segments"):
        resolved(step, scope_of(STEP, BUNDLE, {"tests": {"report": "../prod"}}))
    with pytest.raises(InvalidConfig, match=r"config\.path: .*valid string"):
        resolved(step, scope_of(STEP, BUNDLE, {"tests": {"report": 3}}))


def test_a_text_that_only_looks_like_an_expression_loses_its_dollar() -> None:
    (step,) = planned(sequence(custom(config={"text": "costs $${5}"})), REGISTRY.steps)
    assert resolved(step, {}).config.model_dump()["text"] == "costs ${5}"


def test_outputs_are_bounded() -> None:
    check_outputs({"a": "x" * (OUTPUTS_LIMIT - 10)})
    with pytest.raises(OutputsTooLarge, match="8,192"):
        check_outputs({"a": "x" * OUTPUTS_LIMIT})
    with pytest.raises(OutputsTooLarge, match="no JSON"):
        check_outputs({"a": object()})
