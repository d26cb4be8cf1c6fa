"""The output of a sequence for an environment with a branch of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from kardinal.api import Bundle, PromotionStep
from kardinal.api.pipeline import StepSpec
from kardinal.steps.branch_layout import STATE_PATH
from kardinal.steps.commit_plan import edit_of
from kardinal.steps.declaration import (
    EditContext,
    FileEdit,
    NoConfig,
    PlannedStep,
    Role,
    Source,
    StepDeclaration,
    Surroundings,
)
from kardinal.steps.edit import CHANGES_LIMIT, Changes, EditError
from kardinal.steps.overlay import Overlay
from tests.support.objects import bundle as bundle_object

HERE = "environments/dev"


def render(context: EditContext, config: NoConfig) -> Changes:
    """Write the images of the Bundle to a file, as a renderer writes manifests; forget one that was there."""
    images = ",".join(image.reference for image in context.bundle.spec.artifacts.images)
    return {f"{HERE}/out/manifests.yaml": f"images: {images}\n".encode(), f"{HERE}/out/old.yaml": None}


def touch(context: EditContext, config: NoConfig) -> Changes:
    return {f"{HERE}/touched.yaml": b"touched\n"}


def planned(plan: object, *, renders: bool) -> PlannedStep:
    edit = FileEdit(plan=plan, image_changes=lambda before, after: ())  # type: ignore[arg-type]
    declaration = StepDeclaration(name="edit", role=Role.EDIT, edit=edit, renders=renders)
    return PlannedStep(declaration, NoConfig(), StepSpec(uses="edit"))


def tree(files: Mapping[str, str]) -> Overlay:
    made = Overlay(None)
    made.apply({path: content.encode() for path, content in files.items()})
    return made


def changes(branch: Mapping[str, str], source: Mapping[str, str], *steps: PlannedStep, tag: str = "2") -> Changes:
    step = PromotionStep.model_validate(
        {
            "metadata": {"name": "s", "namespace": "team"},
            "spec": {
                "pipeline": "app",
                "environment": "dev",
                "bundleRef": "b",
                "path": HERE,
                "branch": "env/dev",
                "git": {"url": "file:///repo", "layout": "branch"},
            },
        }
    )
    bundle = Bundle.model_validate(bundle_object("b", image="acme/app", tag=tag))
    around = Surroundings(source=Source("c" * 40, lambda _: tree(source)))
    return edit_of(step, bundle, steps, around)(tree(branch))


def test_output_is_what_a_rendering_step_writes_and_nothing_else() -> None:
    source = {f"{HERE}/kustomization.yaml": "k\n", f"{HERE}/out/old.yaml": "o\n", "base/a.yaml": "a\n"}
    found = changes({}, source, planned(touch, renders=False), planned(render, renders=True))
    assert set(found) == {"out/manifests.yaml", STATE_PATH}
    assert found["out/manifests.yaml"] == b"images: acme/app:2\n"


def test_without_one_the_directory_is_copied_as_the_edits_left_it() -> None:
    source = {f"{HERE}/a.yaml": "a\n", f"{HERE}/.helmignore": "x\n", "base/a.yaml": "a\n"}
    found = changes({"a.yaml": "a\n", "gone.yaml": "g\n"}, source, planned(touch, renders=False))
    assert {path: content for path, content in found.items() if path != STATE_PATH} == {
        "gone.yaml": None,
        "touched.yaml": b"touched\n",
    }


def test_what_was_promoted_before_is_set_again_where_the_bundle_does_not_set_it() -> None:
    before = {"images": [{"name": "db", "reference": "acme/db:7"}, {"name": "x", "reference": "docker.io/acme/app:1"}]}
    source = {f"{HERE}/a.yaml": "a\n"}
    found = changes({STATE_PATH: json.dumps(before)}, source, planned(render, renders=True))
    assert found["out/manifests.yaml"] == b"images: acme/db:7,acme/app:2\n"
    content = found[STATE_PATH]
    assert content is not None
    state = json.loads(content)
    assert [image["reference"] for image in state["images"]] == ["acme/db:7", "acme/app:2"]
    assert state["source"] == "c" * 40


def test_a_record_that_is_current_is_not_written_again() -> None:
    source = {f"{HERE}/a.yaml": "a\n"}
    first = changes({}, source, planned(touch, renders=False))
    branch = {path: content.decode() for path, content in first.items() if content is not None}
    assert changes(branch, source, planned(touch, renders=False)) == {}


def test_a_branch_has_a_bounded_number_of_files() -> None:
    source = {f"{HERE}/f{number}.yaml": "x\n" for number in range(CHANGES_LIMIT)}
    with pytest.raises(EditError, match="at most 5,000 files"):
        changes({}, source, planned(touch, renders=False))


def test_a_directory_that_is_not_in_the_source_is_an_error() -> None:
    with pytest.raises(EditError, match="no such directory"):
        changes({}, {"elsewhere/a.yaml": "a\n"})
