"""A step is known to others by its declaration alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import get_args

import pytest

from kardinal.api import Bundle, PromotionStep
from kardinal.api.pipeline import StepSpec
from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.steps.builtin import BUILTIN_STEPS, GIT_CLONE, GIT_PUSH, WAIT_FOR_MERGE
from kardinal.steps.commit_plan import edit_of
from kardinal.steps.declaration import Fact, FileEdit, NoConfig, PlannedStep, Role, StepDeclaration
from kardinal.steps.edit import Edit, Tree
from kardinal.steps.facts import Facts, facts_of
from kardinal.steps.sequence import planned

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

    def within(self, directory: str) -> Tree:
        return self


def writing(path: str) -> FileEdit:
    """Return an edit that writes one file."""

    def make(step: PromotionStep, bundle: Bundle, config: NoConfig) -> Edit:
        def edit(tree: Tree) -> Mapping[str, bytes]:
            return {path: step.spec.environment.encode()}

        return edit

    return FileEdit(make=make, image_changes=lambda before, after: [])


def test_facts_are_read_by_what_they_are() -> None:
    steps = (GIT_CLONE, GIT_PUSH, WAIT_FOR_MERGE)
    outputs = {
        "git-clone": {"commit": "abc"},
        "git-push": {"changed": False, "branch": "main"},
        "wait-for-merge": {"mergedBy": "alice"},
    }
    found = facts_of(PromotionStepStatus(outputs=outputs), steps)
    assert found == Facts(base_commit="abc", changed=False, merged_by="alice")


def test_a_step_of_another_name_can_find_out_the_same() -> None:
    checkout = StepDeclaration(name="checkout", role=Role.OPEN, outputs={"revision": "base_commit"})
    status = PromotionStepStatus(outputs={"checkout": {"revision": "abc"}, "git-clone": {"commit": "other"}})
    assert facts_of(status, [checkout]).base_commit == "abc"


@pytest.mark.parametrize("outputs", [None, {}, {"git-clone": None}, {"git-clone": {"other": 1}}])
def test_a_fact_that_no_step_has_found_is_none(outputs: dict[str, object] | None) -> None:
    assert facts_of(PromotionStepStatus(outputs=outputs), BUILTIN_STEPS.values()) == Facts()


def test_every_fact_that_can_be_declared_can_be_read() -> None:
    assert set(get_args(Fact)) == {field.name for field in fields(Facts)}


def test_the_edits_of_all_steps_are_one_edit_and_other_steps_add_nothing() -> None:
    steps = [
        PlannedStep(GIT_CLONE, NoConfig()),
        PlannedStep(StepDeclaration(name="one", role=Role.EDIT, edit=writing("a")), NoConfig()),
        PlannedStep(StepDeclaration(name="two", role=Role.EDIT, edit=writing("b")), NoConfig()),
    ]
    assert edit_of(STEP, BUNDLE, steps)(EmptyTree()) == {"a": b"dev", "b": b"dev"}


@pytest.mark.parametrize(("role", "edit"), [(Role.EDIT, None), (Role.PUSH, writing("a")), (None, writing("a"))])
def test_a_step_that_edits_says_how_and_no_other_does(role: Role | None, edit: FileEdit | None) -> None:
    with pytest.raises(ValueError, match="`edit` belongs to the role EDIT"):
        StepDeclaration(name="x", role=role, edit=edit)


def test_a_planned_step_has_its_input_as_read() -> None:
    (step,) = planned([StepSpec(uses="kustomize-set-image", config={"path": "eu"})])
    assert (step.name, step.config.model_dump()) == ("kustomize-set-image", {"path": "eu"})
