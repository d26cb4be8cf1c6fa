"""Steps that render write what the cluster gets into the environment's directory, in the promotion's one commit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.objects import JsonObject
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent
from tests.support.names import DEV
from tests.support.renderers import install, needs, program
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

OVERLAY = f"environments/{DEV}"
SET = {"uses": "kustomize-set-image"}
CHART = {
    "charts/app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n",
    "charts/app/templates/app.yaml": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: '{{ .Release.Name }}', namespace: '{{ .Release.Namespace }}'}\n"
        "spec: {containers: [{name: app, image: 'r/app:{{ .Values.tag }}', args: ['{{ .Values.arg }}']}]}\n"
    ),
    f"{OVERLAY}/values.yaml": "tag: '3'\narg: a\n",
}


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a directory at the front of PATH with kustomize and helm."""
    install(tmp_path / "programs")
    monkeypatch.setenv("PATH", f"{tmp_path / 'programs'}:{os.environ['PATH']}")
    return tmp_path / "programs"


def with_steps(repository: GitRepository, *edits: JsonObject, **spec: Any) -> JsonObject:
    ends = [{"uses": "git-commit"}, {"uses": "git-push"}, {"uses": "health-check"}]
    return promotion_step(repository, steps=[{"uses": "git-clone"}, *edits, *ends], **spec)


async def test_the_rendered_overlay_is_committed_with_the_edit(
    world: World, repository: GitRepository, programs: Path
) -> None:
    needs(programs, "kustomize")
    await start_agent(world)
    await deploy(world)
    await create(world, with_steps(repository, SET, {"uses": "kustomize-build"}))
    await reached(world, "Verified")
    (rendered,) = yaml.safe_load_all(repository.read(f"{OVERLAY}/manifests.yaml"))
    assert rendered["spec"]["template"]["spec"]["containers"][0]["image"] == f"{IMAGE}:1.1.0"
    assert len(repository.promotions(DEV)) == 1


async def test_a_directory_gets_a_file_for_each_object_and_loses_the_others(
    world: World, repository: GitRepository, programs: Path
) -> None:
    program(
        programs,
        "kustomize",
        r"""printf 'kind: A\nmetadata: {name: ../../x}\n---\nkind: A\nmetadata: {name: ../../x}\n'""",
    )
    repository.commit({f"{OVERLAY}/rendered/deployment-gone.yaml": "kind: Deployment\n"})
    await start_agent(world)
    await deploy(world)
    await create(world, with_steps(repository, SET, {"uses": "kustomize-build", "config": {"out": "rendered"}}))
    await reached(world, "Verified")
    names = repository.git("ls-tree", "--name-only", f"main:{OVERLAY}/rendered").split()
    assert names == ["a-..-..-x-2.yaml", "a-..-..-x.yaml"]


async def test_sources_are_never_taken_for_rendered_manifests(
    world: World, repository: GitRepository, programs: Path
) -> None:
    program(programs, "kustomize", "echo kind: A")
    repository.commit({f"{OVERLAY}/sub/kustomization.yaml": "resources: []\n"})
    await start_agent(world)
    await create(world, with_steps(repository, SET, {"uses": "kustomize-build", "config": {"out": "sub"}}))
    status = await reached(world, "Failed")
    assert f"{OVERLAY}/sub: holds {OVERLAY}/sub/kustomization.yaml" in status["message"]
    assert repository.promotions(DEV) == []


async def test_a_chart_is_rendered_for_the_environment(world: World, repository: GitRepository, programs: Path) -> None:
    needs(programs, "helm")
    repository.commit(CHART)
    await start_agent(world)
    await deploy(world)
    config = {"chart": "charts/app", "values": ["values.yaml"], "set": {"arg": "b,tag=9"}, "out": "pod.yaml"}
    await create(world, with_steps(repository, SET, {"uses": "helm-template", "config": config}))
    await reached(world, "Verified")
    rendered = yaml.safe_load(repository.read(f"{OVERLAY}/pod.yaml"))
    assert rendered["metadata"] == {"name": "my-app", "namespace": DEV}
    assert rendered["spec"]["containers"] == [{"name": "app", "image": "r/app:3", "args": ["b,tag=9"]}]


async def test_a_missing_program_ends_the_promotion_and_is_named(
    world: World, repository: GitRepository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await start_agent(world)
    monkeypatch.setenv("PATH", str(tmp_path))
    await create(world, with_steps(repository, SET, {"uses": "kustomize-build"}))
    status = await reached(world, "Failed")
    assert "there is no kustomize. " in status["message"]
    monkeypatch.undo()
    assert repository.promotions(DEV) == []


async def test_a_renderer_answers_what_our_reading_leaves_open(
    world: World, repository: GitRepository, programs: Path
) -> None:
    needs(programs, "kustomize")
    replacement = (
        "replacements:\n- source: {kind: Deployment, name: my-app, fieldPath: metadata.name}\n  targets:\n"
        "  - select: {kind: Deployment}\n    fieldPaths: ['spec.template.spec.containers.[name=app].image']\n"
    )
    kustomization = repository.read(f"{OVERLAY}/kustomization.yaml")
    repository.commit({f"{OVERLAY}/kustomization.yaml": kustomization + replacement})
    await start_agent(world)
    await create(world, promotion_step(repository))
    status = await reached(world, "Failed")
    assert "setting ghcr.io/acme/my-app has no effect" in status["message"]


@pytest.mark.parametrize(
    ("step", "field"),
    [
        ({"uses": "kustomize-build", "config": {"out": "."}}, "steps[1].config.out"),
        ({"uses": "kustomize-build", "config": {"out": "../prod/x.yaml"}}, "steps[1].config.out"),
        ({"uses": "kustomize-build", "config": {"path": "../prod"}}, "steps[1].config.path"),
        ({"uses": "helm-template", "config": {}}, "steps[1].config.chart"),
        ({"uses": "helm-template", "config": {"chart": "/etc"}}, "steps[1].config.chart"),
        ({"uses": "helm-template", "config": {"chart": "c", "values": ["../v.yaml"]}}, "steps[1].config.values"),
    ],
)
async def test_a_config_that_leaves_the_environment_is_refused(
    world: World, repository: GitRepository, step: JsonObject, field: str
) -> None:
    await start_agent(world)
    await create(world, with_steps(repository, step))
    status = await reached(world, "Failed")
    assert status["message"].startswith(field)
