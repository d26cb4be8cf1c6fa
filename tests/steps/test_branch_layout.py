"""The output of a sequence for an environment with a branch of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.bundle import ArtifactKind, Chart, Image
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.branch_layout import COMMITS_LIMIT, STATE_PATH, BranchState
from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.commit_plan import edit_of
from kardinal.promotion.steps.config_history import RecordedCommit
from kardinal.promotion.steps.config_merge import CONFIG_MERGE
from kardinal.promotion.steps.config_replay import RecordMoved, check_brought, replays_of
from kardinal.promotion.steps.config_source import ConfigMergeConfig
from kardinal.promotion.steps.declaration import (
    EditContext,
    FileEdit,
    NoConfig,
    PlannedStep,
    RenderSource,
    Role,
    StepDeclaration,
    Surroundings,
)
from kardinal.promotion.steps.effect import NoEffect
from kardinal.tree.differences import FileChange
from kardinal.tree.edit import CHANGES_LIMIT, Changes, EditError
from kardinal.tree.overlay import Overlay
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


def changes(
    branch: Mapping[str, str],
    source: Mapping[str, str],
    *steps: PlannedStep,
    tag: str = "2",
    image: str = "acme/app",
    update: Mapping[str, Any] | None = None,
) -> Changes:
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
                "update": update or {},
            },
        }
    )
    bundle = Bundle.model_validate(bundle_object("b", image=image, tag=tag))
    around = Surroundings(source=RenderSource("c" * 40, lambda _: tree(source)))
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


def test_earlier_images_are_kept_where_the_bundle_sets_none() -> None:
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


TWO_VALUES = "app: {tag: '1', repository: acme/app}\ndb: {tag: '6', repository: acme/db}\n"
NAMED = [{"path": "app.tag", "image": "acme/app"}, {"path": "db.tag", "image": "acme/db"}]


@pytest.mark.parametrize(
    ("uses", "update", "source", "expected"),
    [
        (
            "helm-set-image",
            {"strategy": "helm", "helm": {"values": NAMED}},
            {"values.yaml": TWO_VALUES},
            {"values.yaml": TWO_VALUES.replace("'1'", "'2'").replace("'6'", "'7'")},
        ),
        (
            "replace",
            {"strategy": "replace", "replace": {"files": ["a.tf", "b.tf"]}},
            {"a.tf": "acme/app:1", "b.tf": "acme/db:6"},
            {"a.tf": "acme/app:2", "b.tf": "acme/db:7"},
        ),
    ],
)
def test_every_edit_sets_the_images_of_others_and_is_judged_by_its_own(
    uses: str, update: dict[str, Any], source: dict[str, str], expected: dict[str, str]
) -> None:
    """The image of the Bundle is in one of the places, and that of the record in the other."""
    before = {STATE_PATH: json.dumps({"images": [{"name": "db", "reference": "acme/db:7"}]})}
    declaration = BUILTIN_STEPS[uses]
    step = PlannedStep(declaration, declaration.config(), StepSpec(uses=uses))
    found = changes(before, {f"{HERE}/{path}": text for path, text in source.items()}, step, update=update)
    assert {path: (content or b"").decode() for path, content in found.items() if path != STATE_PATH} == expected
    with pytest.raises(NoEffect, match="acme/other"):
        changes(
            before, {f"{HERE}/{path}": text for path, text in source.items()}, step, update=update, image="acme/other"
        )


def test_charts_of_the_record_are_set_again_and_hold_nothing_once_not_asked_for() -> None:
    chart = {"repository": "https://charts.example.com", "name": "web", "version": "2.0.0"}
    before = {STATE_PATH: json.dumps({"charts": [chart, chart | {"name": "gone"}]})}
    text = "apiVersion: v2\ndependencies:\n- {name: web, repository: https://charts.example.com, version: 1.0.0}\n"
    declaration = BUILTIN_STEPS["helm-set-chart"]
    step = PlannedStep(declaration, declaration.config(), StepSpec(uses="helm-set-chart"))
    found = changes(before, {f"{HERE}/Chart.yaml": text}, step)
    assert found["Chart.yaml"] == text.replace("1.0.0", "2.0.0").encode()
    state = json.loads(found[STATE_PATH] or b"")
    assert [(one["name"], one["version"]) for one in state["charts"]] == [("web", "2.0.0"), ("gone", "2.0.0")]


REPOSITORY = "https://git.example.org/acme/config"
ONE = "1" * 40
TWO = "2" * 40


def merging(branch: Mapping[str, str], read: list[str], *, commit: str | None) -> Changes:
    """Return what a Bundle with `commit` changes, where the commits `read` were read before; each makes one file."""
    step = PromotionStep.model_validate(
        {
            "metadata": {"name": "s", "namespace": "team"},
            "spec": {
                "pipeline": "app",
                "environment": "dev",
                "bundleRef": "b",
                "path": HERE,
                "branch": "env/dev",
                "git": {"url": "https://git.example.org/acme/gitops", "layout": "branch"},
                "update": {"config": {"repository": REPOSITORY}},
            },
        }
    )
    artifacts = {"gitCommit": {"repository": REPOSITORY, "sha": commit}} if commit else {}
    bundle = Bundle.model_validate(bundle_object("b", type="config", artifacts=artifacts))
    steps = (PlannedStep(CONFIG_MERGE, ConfigMergeConfig(), StepSpec(uses="config-merge")),)
    known = tuple(RecordedCommit(repository=REPOSITORY, commit=one) for one in read)
    differences = {
        replay: [[FileChange(f"{replay.source.commit[:1]}.yaml", None, b"x\n")]]
        for replay in replays_of(step, Bundle.model_validate(bundle_object("x")), ConfigMergeConfig(), known)
    }
    source = RenderSource("c" * 40, lambda _: tree({f"{HERE}/a.yaml": "a\n"}))
    around = Surroundings(source=source, differences=differences)
    return edit_of(step, bundle, steps, around)(tree(branch))


def record(*commits: str, **fields: Any) -> dict[str, str]:
    entries = [{"repository": REPOSITORY, "commit": commit} | fields for commit in commits]
    return {STATE_PATH: json.dumps({"config": entries})}


def test_the_commits_of_the_record_are_brought_before_that_of_the_bundle() -> None:
    found = merging(record(ONE), [ONE, TWO], commit=TWO)
    assert {"a.yaml", "1.yaml", "2.yaml"} <= set(found)
    state = json.loads(found[STATE_PATH] or b"")
    assert [one["commit"] for one in state["config"]] == [ONE, TWO]
    assert set(merging(record(ONE, TWO), [ONE, TWO], commit=ONE)) == {"a.yaml", "1.yaml", STATE_PATH}
    assert set(merging(record(ONE), [ONE], commit=None)) == {"a.yaml", "1.yaml", STATE_PATH}


def test_a_record_that_has_changed_since_it_was_read_is_read_again() -> None:
    """Another promotion has landed between the reading and the edit."""
    with pytest.raises(RecordMoved) as caught:
        merging(record(ONE), [TWO], commit=TWO)
    assert caught.value.transient


def test_a_record_has_a_bounded_number_of_commits() -> None:
    full = [f"{number:040x}" for number in range(COMMITS_LIMIT)]
    assert merging(record(*full), full, commit=full[0])
    with pytest.raises(EditError, match=f"has {COMMITS_LIMIT} commits of {REPOSITORY}, and no more are recorded"):
        merging(record(*full), [*full, TWO], commit=TWO)
    with pytest.raises(EditError, match="is not what kardinal wrote"):
        merging(record(*full, TWO), [*full, TWO], commit=None)


def test_a_record_of_another_repository_is_refused() -> None:
    with pytest.raises(EditError) as caught:
        merging(record(ONE, repository="https://git.example.org/other/secret"), [ONE], commit=None)
    assert f"{STATE_PATH}: records commit {ONE[:12]}, but the Pipeline takes configuration from {REPOSITORY}" in str(
        caught.value
    )


@pytest.mark.parametrize(
    ("state", "takes", "missing"),
    [
        (BranchState(images=(Image(reference="a:1"),)), ["charts"], "images"),
        (BranchState(charts=(Chart(repository="https://c", name="c", version="1"),)), ["images"], "charts"),
        (BranchState(config=(RecordedCommit(repository=REPOSITORY, commit=ONE),)), ["images"], "gitCommit"),
    ],
)
def test_recorded_configuration_is_not_left_out(state: BranchState, takes: list[ArtifactKind], missing: str) -> None:
    def step(kinds: frozenset[ArtifactKind] | None) -> PlannedStep:
        return PlannedStep(
            replace(planned(touch, renders=False).declaration, takes=kinds), NoConfig(), StepSpec(uses="e")
        )

    with pytest.raises(EditError, match=f"records {missing}, and no step of the environment brings them"):
        check_brought([step(frozenset(takes))], state)
    check_brought([step(frozenset(takes)), step(None)], state)
    check_brought([step(frozenset(state.kinds))], state)
    check_brought([], state)
