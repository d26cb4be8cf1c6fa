"""A step is known to others by its declaration alone."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.steps.builtin import BUILTIN_STEPS, GIT_CLONE, GIT_PUSH, WAIT_FOR_MERGE
from kardinal.promotion.steps.commit_plan import edit_of
from kardinal.promotion.steps.declaration import (
    EditContext,
    Fact,
    FileEdit,
    NoConfig,
    PlannedStep,
    Role,
    StepDeclaration,
)
from kardinal.promotion.steps.facts import StepFacts, facts_of
from kardinal.promotion.steps.sequence import planned
from kardinal.tree.edit import Changes, EditError, Tree

STEP = PromotionStep.model_validate(
    {
        "metadata": {"name": "my-app-1-dev"},
        "spec": {
            "pipeline": "my-app",
            "environment": "dev",
            "bundleRef": "my-app-1",
            "path": "environments/dev",
            "git": {"url": "https://example.com/repo"},
        },
    }
)
BUNDLE = Bundle.model_validate({"spec": {"artifacts": {}}})


class EmptyTree:
    """A repository without files."""

    def read(self, path: str) -> bytes | None:
        return None

    def size(self, path: str) -> int | None:
        return None

    def entries(self, directory: str) -> list[str]:
        return []

    def is_dir(self, path: str) -> bool:
        return False

    def identify(self, path: str) -> str | None:
        return None

    def within(self, directory: str) -> Tree:
        return self


def writing(path: str) -> FileEdit:
    """Return an edit that writes one file."""

    def plan(context: EditContext, config: NoConfig) -> Changes:
        before = context.tree.read("environments/dev/a") or b""
        return {path: before + context.step.spec.environment.encode()}

    return FileEdit(plan=plan, image_changes=lambda before, after: [])


def test_facts_are_read_by_what_they_are() -> None:
    steps = (GIT_CLONE, GIT_PUSH, WAIT_FOR_MERGE)
    outputs = {
        "git-clone": {"commit": "abc"},
        "git-push": {"changed": False, "branch": "main"},
        "wait-for-merge": {"mergedBy": "alice"},
    }
    found = facts_of(PromotionStepStatus(outputs=outputs), map(step_of, steps))
    assert found == StepFacts(base_commit="abc", changed=False, merged_by="alice")


def test_a_step_of_another_name_can_find_out_the_same() -> None:
    checkout = StepDeclaration(name="checkout", role=Role.OPEN, outputs={"revision": "base_commit"})
    status = PromotionStepStatus(outputs={"checkout": {"revision": "abc"}, "git-clone": {"commit": "other"}})
    assert facts_of(status, [step_of(checkout)]).base_commit == "abc"


@pytest.mark.parametrize("outputs", [None, {}, {"git-clone": None}, {"git-clone": {"other": 1}}])
def test_a_fact_that_no_step_has_found_is_none(outputs: dict[str, object] | None) -> None:
    assert facts_of(PromotionStepStatus(outputs=outputs), map(step_of, BUILTIN_STEPS.values())) == StepFacts()


def test_every_fact_that_can_be_declared_can_be_read() -> None:
    assert set(get_args(Fact)) == {field.name for field in fields(StepFacts)}


def test_the_edits_of_all_steps_are_one_edit_and_other_steps_add_nothing() -> None:
    steps = [
        step_of(GIT_CLONE),
        step_of(StepDeclaration(name="one", role=Role.EDIT, edit=writing("environments/dev/a"))),
        step_of(StepDeclaration(name="two", role=Role.EDIT, edit=writing("environments/dev/b"))),
    ]
    # The second edit sees what the first has done.
    expected = {"environments/dev/a": b"dev", "environments/dev/b": b"devdev"}
    assert edit_of(STEP, BUNDLE, steps)(EmptyTree()) == expected


@pytest.mark.parametrize("path", ["environments/prod/a", "environments/dev-2/a", "a", "environments"])
def test_an_edit_outside_the_directory_of_the_environment_is_refused(path: str) -> None:
    step = step_of(StepDeclaration(name="one", role=Role.EDIT, edit=writing(path)))
    with pytest.raises(EditError, match="step one may not change it: it is outside environments/dev"):
        edit_of(STEP, BUNDLE, [step])(EmptyTree())


def step_of(declaration: StepDeclaration) -> PlannedStep:
    return PlannedStep(declaration, NoConfig(), StepSpec(uses=declaration.name))


@pytest.mark.parametrize(("role", "edit"), [(Role.EDIT, None), (Role.PUSH, writing("a")), (None, writing("a"))])
def test_a_step_that_edits_says_how_and_no_other_does(role: Role | None, edit: FileEdit | None) -> None:
    with pytest.raises(ValueError, match="`edit` belongs to the role EDIT"):
        StepDeclaration(name="x", role=role, edit=edit)


def test_a_planned_step_has_its_input_as_read() -> None:
    (step,) = planned([StepSpec(uses="kustomize-set-image", config={"path": "eu"})], BUILTIN_STEPS)
    assert (step.name, step.config.model_dump()) == ("kustomize-set-image", {"path": "eu", "images": ()})
