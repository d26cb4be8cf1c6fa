"""A sequence of steps is executed as written, or refused at the field that is wrong."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.sequence import default_sequence, sequence_problems
from tests.support.registry import REGISTRY

AUTO = ("git-clone", "kustomize-set-image", "git-commit", "git-push", "health-check")
REVIEWED = (*AUTO[:-1], "open-pr", "wait-for-merge", "health-check")
RECORDED = (*AUTO[:-1], "open-pr", "merge-pr", "health-check")


def steps(*names: str) -> tuple[StepSpec, ...]:
    return tuple(StepSpec(uses=name) for name in names)


def refusals(
    sequence: tuple[StepSpec, ...],
    *,
    approval: Literal["auto", "pr-review"] = "auto",
    pr: bool = False,
    provider: str = "local",
) -> list[tuple[str, str]]:
    return [
        (problem.field, problem.message)
        for problem in sequence_problems(
            sequence,
            approval=approval,
            pr=pr,
            capabilities=REGISTRY.providers[provider],
            table=REGISTRY.steps,
        )
    ]


@pytest.mark.parametrize(
    ("approval", "pr", "names"),
    [("auto", False, AUTO), ("auto", True, RECORDED), ("pr-review", False, REVIEWED), ("pr-review", True, REVIEWED)],
)
def test_the_default_sequence_follows_the_approval_and_is_accepted(
    approval: Literal["auto", "pr-review"], pr: bool, names: tuple[str, ...]
) -> None:
    sequence = default_sequence(approval=approval, pr=pr, strategy="kustomize")
    assert tuple(step.uses for step in sequence) == names
    assert refusals(sequence, approval=approval, pr=pr) == []


@pytest.mark.parametrize(
    ("strategy", "edit"), [("kustomize", "kustomize-set-image"), ("helm", "helm-set-image"), ("replace", "replace")]
)
def test_a_strategy_has_an_edit_of_its_own(strategy: str, edit: str) -> None:
    sequence = default_sequence(approval="auto", pr=False, strategy=strategy)
    assert sequence[1].uses == edit
    assert not refusals(sequence)


def test_a_strategy_that_is_not_executed_has_no_sequence_that_is_accepted() -> None:
    assert refusals(default_sequence(approval="auto", pr=False, strategy="oci"))[0][0] == "steps[1].uses"


@pytest.mark.parametrize(
    ("names", "field", "words"),
    [
        (("git-clon", *AUTO[1:]), "steps[0].uses", "did you mean 'git-clone'?"),
        (("git-clone", "run-tests", "health-check"), "steps[1].uses", "a step of your own needs config.url"),
        (("git-clone", "git-push", "git-commit", "health-check"), "steps[1].uses", "git-push before git-commit"),
        (("kustomize-set-image", *AUTO), "steps[0].uses", "put git-clone before it"),
        (("git-clone", "git-commit", "git-push", "health-check"), "steps[1].uses", "no step before git-commit edits"),
        ((*AUTO[:2], "health-check"), "steps[0].uses", "without git-commit"),
        ((*AUTO[:3], "health-check"), "steps[2].uses", "without git-push"),
        (AUTO[:-1], "steps[3].uses", "the last step must be health-check"),
        ((*AUTO, "health-check"), "steps[5].uses", "stands in the sequence twice"),
        (
            (*AUTO[:4], "open-pr", "wait-for-merge", "health-check"),
            "steps[4].uses",
            "set approval: pr-review",
        ),
        ((), "steps", "leave steps out"),
    ],
)
def test_a_sequence_that_makes_no_sense_is_refused(names: tuple[str, ...], field: str, words: str) -> None:
    found = refusals(steps(*names))
    assert any(where == field and words in message for where, message in found), found


def test_a_review_cannot_be_skipped_by_leaving_out_its_steps() -> None:
    found = refusals(steps(*AUTO), approval="pr-review")
    assert found[0][0] == "steps[3].uses"
    assert "approval asks for a pull request" in found[0][1]


def test_a_pull_request_without_a_wait_for_its_merge_is_refused() -> None:
    found = refusals(steps(*AUTO[:4], "open-pr", "health-check"), approval="pr-review")
    assert found == [
        (
            "steps[4].uses",
            "open-pr has no effect without wait-for-merge or merge-pr; add wait-for-merge or merge-pr after it",
        ),
    ]


def test_person_alone_merges_where_a_review_is_asked_for() -> None:
    found = refusals(steps(*RECORDED), approval="pr-review")
    assert [field for field, _ in found] == ["steps[5].uses"]
    assert "approval asks for one: a person must merge" in found[0][1]


def test_without_a_review_a_person_or_the_agent_merges_and_not_both() -> None:
    assert refusals(steps(*REVIEWED), pr=True) == []
    found = refusals(steps(*AUTO[:-1], "open-pr", "wait-for-merge", "merge-pr", "health-check"), pr=True)
    assert [field for field, _ in found] == ["steps[6].uses"]
    assert "one merges, the other waits for a person" in found[0][1]


def test_plain_git_has_no_pull_requests() -> None:
    sequence = default_sequence(approval="pr-review", pr=False, strategy="kustomize")
    assert refusals(sequence, approval="pr-review", provider="git")[0][0] == "approval"
    assert refusals(sequence, pr=True, provider="git")[0][0] == "pr"


def test_an_environment_may_only_prove_what_another_one_wrote() -> None:
    assert refusals(steps("health-check")) == []


def test_several_overlays_may_be_edited() -> None:
    sequence = (
        *steps("git-clone"),
        StepSpec(uses="kustomize-set-image", config={"path": "eu"}),
        StepSpec(uses="kustomize-set-image", config={"path": "us"}),
        *steps("git-commit", "git-push", "health-check"),
    )
    assert refusals(sequence) == []


@pytest.mark.parametrize(
    ("uses", "config", "field", "words"),
    [
        ("kustomize-set-image", {"pth": "eu"}, "steps[1].config.pth", "did you mean 'path'?"),
        ("kustomize-set-image", {"path": 3}, "steps[1].config.path", "valid string"),
        ("kustomize-set-image", {"path": "../prod"}, "steps[1].config.path", "without .. segments"),
        ("kustomize-set-image", {"path": "/etc"}, "steps[1].config.path", "relative path"),
        ("git-push", {"force": True}, "steps[1].config.force", "git-push takes no config"),
        ("yaml-update", {"updates": []}, "steps[1].config.file", "Field required"),
        ("yaml-update", {"file": "a", "updates": []}, "steps[1].config.updates", "at least 1 item"),
        (
            "yaml-update",
            {"file": "a", "updates": [{"path": "x", "vlaue": 1, "value": 1}]},
            "steps[1].config.updates[0].vlaue",
            "did you mean 'value'?",
        ),
        (
            "yaml-update",
            {"file": "a", "updates": [{"path": "x..y", "value": 1}]},
            "steps[1].config.updates[0].path",
            "'x..y' is not a path at character 2",
        ),
        (
            "yaml-update",
            {"file": "a", "updates": [{"path": "x", "value": {"y": 1}}]},
            "steps[1].config.updates[0].value",
            "must be text, a number, true, false or null",
        ),
        (
            "yaml-update",
            {"file": "a", "updates": [{"path": "x", "value": 1}], "document": {"knd": "Service"}},
            "steps[1].config.document.knd",
            "did you mean 'kind'?",
        ),
        ("helm-set-image", {"file": "../values.yaml"}, "steps[1].config.file", "without .. or .git segments"),
        ("helm-set-image", {"file": "x/.GIT/config"}, "steps[1].config.file", "without .. or .git segments"),
        ("helm-set-image", {"file": "./"}, "steps[1].config.file", "without .. or .git segments"),
        ("helm-template", {"chart": "a", "values": ["v,/etc/x"]}, "steps[1].config.values[0]", "without commas"),
        ("helm-template", {"chart": "a,b"}, "steps[1].config.chart", "segments and commas"),
        ("helm-set-image", {"values": [{"path": "a", "value": "tagg"}]}, "steps[1].config.values[0].value", "'tag'"),
        ("replace", {"file": ["a"]}, "steps[1].config.file", "did you mean 'files'?"),
        ("replace", {"files": ["/etc/passwd"]}, "steps[1].config.files[0]", "must be a relative path"),
        ("copy", {"form": "a", "from": "b", "to": "c"}, "steps[1].config.form", "did you mean 'from'?"),
        ("copy", {"from": "a", "to": "b/../../c"}, "steps[1].config.to", "must be a relative path"),
        ("delete", {"paths": ["**", "../*"]}, "steps[1].config.paths[1]", "must be a relative path"),
    ],
)
def test_a_wrong_input_of_a_step_is_refused(uses: str, config: dict[str, Any], field: str, words: str) -> None:
    found = refusals((*steps("git-clone"), StepSpec(uses=uses, config=config)))
    assert found[0][0] == field
    assert words in found[0][1]
