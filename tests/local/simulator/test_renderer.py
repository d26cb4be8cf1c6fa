"""Rendering by another program: from one export per commit that holds what is read, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from kardinal.git import GitRunner
from kardinal.processes.isolation import Walls
from kardinal_local.simulator import exports, find_renderer
from kardinal_local.simulator.exports import Exports
from kardinal_local.simulator.inputs import Inputs, find_inputs
from kardinal_local.simulator.kustomization import RenderError
from kardinal_local.simulator.renderer import KustomizeRenderer
from tests.local.simulator.conftest import Files

LIST = 'cd "$0/../.." && find . ! -type d | sed "s/.*/- &/" | sort | (echo files: && cat)'
"""A program that answers with the names of the files it was given."""
NO_WALLS = Walls(landlock="programs of the shell are run", seccomp="as above")
DEV = ["base/deployment.yaml", "base/kustomization.yaml", "env/dev/kustomization.yaml"]


def _renderer(directory: Path, runner: GitRunner, script: str) -> KustomizeRenderer:
    """Return a renderer that runs a shell script with the directory as its $0."""
    command = ["/bin/sh", "-c", f"PATH=/usr/bin:/bin; {script}"]
    return KustomizeRenderer(command, exports=Exports(directory, runner=runner), runner=runner, walls=NO_WALLS)


async def _inputs(files: Files, path: str) -> Inputs | None:
    return await files.read(lambda tree: find_inputs(tree, path))


async def _listed(files: Files, renderer: KustomizeRenderer, path: str, inputs: Inputs | None) -> list[str]:
    async with renderer.at(files.repository, files.bare.head()) as rendering:
        (answer,) = (await rendering.render(path, inputs)).objects
    return sorted(name.removeprefix("./") for name in answer["files"])


async def test_a_commit_is_written_once_as_far_as_it_is_read_and_while_it_is(
    files: Files, tmp_path: Path, runner: GitRunner
) -> None:
    renderer = _renderer(tmp_path / "exports", runner, LIST)
    commit = files.bare.head()
    async with renderer.at(files.repository, commit), renderer.at(files.repository, commit):
        assert await _listed(files, renderer, "env/dev", await _inputs(files, "env/dev")) == DEV
        assert len(os.listdir(tmp_path / "exports")) == 1
        both = await _listed(files, renderer, "env/prod", await _inputs(files, "env/prod"))
        assert both == sorted([*DEV, "env/prod/kustomization.yaml", "shared/config.yaml", "shared/kustomization.yaml"])
        other = files.commit({"README.md": "changed\n"})
        async with renderer.at(files.repository, other) as rendering:
            await rendering.render("env/dev", await _inputs(files, "env/dev"))
            assert len(os.listdir(tmp_path / "exports")) == 2
    assert os.listdir(tmp_path / "exports") == []


async def test_every_file_is_exported_where_the_inputs_are_not_known(
    files: Files, tmp_path: Path, runner: GitRunner
) -> None:
    renderer = _renderer(tmp_path / "exports", runner, LIST)
    assert "README.md" in await _listed(files, renderer, "env/dev", None)


async def test_links_inside_of_the_repository_are_kept(files: Files, tmp_path: Path, runner: GitRunner) -> None:
    files.link("env/dev/linked.yaml", "../../shared/config.yaml")
    files.link("env/dev/leads-out.yaml", "../../../exports")
    files.link("env/dev/absolute.yaml", "/etc/passwd")
    renderer = _renderer(tmp_path / "exports", runner, 'cat "$0/linked.yaml" && ! ls "$0" | grep -e out -e absolute')
    async with renderer.at(files.repository, files.bare.head()) as rendering:
        (found,) = (await rendering.render("env/dev", None)).objects
    assert found["metadata"]["name"] == "shared"


async def test_a_failure_reads_the_same_each_time(files: Files, tmp_path: Path, runner: GitRunner) -> None:
    said = (
        'echo "I1122 12:00:00.$$  $$ kustomize.go:12] trying" >&2; echo "2026/11/22 12:00:00 well-defined" >&2; '
        "echo \"error: no such file $0/missing.yaml in '$0'\" >&2; exit 1"
    )
    renderer = _renderer(tmp_path / "exports", runner, said)
    texts = set()
    for _ in range(2):
        with pytest.raises(RenderError) as failure:
            await _listed(files, renderer, "env/dev", None)
        texts.add(str(failure.value))
    assert texts == {"env/dev: trying well-defined error: no such file env/dev/missing.yaml in 'env/dev'"}


async def test_no_more_programs_run_at_once_than_there_are_cores(
    files: Files, tmp_path: Path, runner: GitRunner
) -> None:
    count = 'mkdir "$TMPDIR/$$" && sleep 0.1 && echo "running: $(ls $TMPDIR | wc -l)" && rmdir "$TMPDIR/$$"'
    renderer = _renderer(tmp_path / "exports", runner, count)
    async with renderer.at(files.repository, files.bare.head()) as rendering:
        cores = os.cpu_count() or 1
        results = await asyncio.gather(*(rendering.render("env/dev", None) for _ in range(2 * cores + 1)))
    assert 1 <= max(result.objects[0]["running"] for result in results) <= cores


async def test_a_rendering_that_is_cancelled_leaves_nothing(files: Files, tmp_path: Path, runner: GitRunner) -> None:
    renderer = _renderer(tmp_path / "exports", runner, 'touch "$TMPDIR/began" && exec sleep 60')
    job = asyncio.create_task(_listed(files, renderer, "env/dev", None))
    async with asyncio.timeout(20):
        while not list((tmp_path / "exports").glob("*/scratch/began")):
            await asyncio.sleep(0)
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert os.listdir(tmp_path / "exports") == []


async def test_export_of_a_killed_process_is_removed_by_the_next(tmp_path: Path, runner: GitRunner) -> None:
    left = tmp_path / "exports" / "1" / "files"
    left.mkdir(parents=True)
    (left / "kustomization.yaml").touch()
    await find_renderer(runner, tmp_path / "exports")
    assert not left.parent.exists()


async def test_a_commit_that_is_too_large_is_refused(
    files: Files, tmp_path: Path, runner: GitRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "LIMIT", 200)
    renderer = _renderer(tmp_path / "exports", runner, LIST)
    assert await _listed(files, renderer, "env/dev", await _inputs(files, "env/dev")) == DEV
    with pytest.raises(RenderError, match="larger than 200 bytes"):
        await _listed(files, renderer, "env/dev", None)
    assert os.listdir(tmp_path / "exports") == []


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
async def test_known_inputs_are_enough_for_kubectl(files: Files, tmp_path: Path, runner: GitRunner) -> None:
    files.commit(
        {
            "env/prod/kustomization.yaml": "namespace: prod\nresources: [../../base, sub]\ncomponents: [../../labels]\n"
            "configMapGenerator: [{name: made, files: [a.txt]}]\npatches: [{path: patch.yaml}]\n",
            "env/prod/a.txt": "a\n",
            "env/prod/patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec: {paused: on}\n",
            "env/prod/sub/kustomization.yaml": "resources: [../../../shared]\n",
            "labels/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
            "labels: [{pairs: {team: shop}}]\n",
        }
    )
    renderer = await find_renderer(runner, tmp_path / "exports")
    inputs = await _inputs(files, "env/prod")
    assert inputs is not None
    answers = []
    for known in (inputs, None):
        async with renderer.at(files.repository, files.bare.head()) as rendering:
            answers.append((await rendering.render("env/prod", known)).objects)
    assert answers[0] == answers[1]
    assert {item["kind"] for item in answers[0]} == {"Deployment", "ConfigMap"}
