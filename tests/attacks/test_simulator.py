"""The simulator renders repositories of others on the machine of a person: it fetches nothing and tells nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kardinal.git import GitRunner
from kardinal.processes.isolation import Walls, find_walls
from kardinal_local.simulator import BuiltInRenderer, DirectoryRenderer
from kardinal_local.simulator.exports import Exports
from kardinal_local.simulator.kustomization import RenderError
from kardinal_local.simulator.renderer import KustomizeRenderer, find_renderer
from tests.local.simulator.conftest import Files, files, runner

__all__ = ["files", "runner"]

NO_WALLS = Walls(landlock="programs of the shell are run", seccomp="as above")
LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))


def shell(directory: Path, runner: GitRunner, script: str, walls: Walls = NO_WALLS) -> KustomizeRenderer:
    command = ["/bin/sh", "-c", f"PATH=/usr/bin:/bin; {script}"]
    return KustomizeRenderer(command, exports=Exports(directory, runner=runner), runner=runner, walls=walls)


async def rendered(files: Files, renderer: DirectoryRenderer, path: str = "env/dev") -> list[dict[str, object]]:
    async with renderer.at(files.repository, files.bare.head()) as rendering:
        return (await rendering.render(path, None)).objects


@pytest.mark.parametrize(
    "resource",
    [
        "https://example.com/evil.yaml",
        "git::https://example.com/evil",
        "github.com/acme/evil?ref=v1",
        "git@example.com:acme/evil",
    ],
)
async def test_nothing_is_fetched(files: Files, tmp_path: Path, runner: GitRunner, resource: str) -> None:
    files.commit({"env/dev/kustomization.yaml": f"resources: ['{resource}']\n"})
    ran = tmp_path / "ran"
    with pytest.raises(RenderError, match="not in the repository"):
        await rendered(files, shell(tmp_path / "exports", runner, f"touch {ran}"))
    assert not ran.exists()


async def test_a_program_gets_nothing_of_the_environment(
    files: Files, tmp_path: Path, runner: GitRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_TOKEN", "of this person")
    script = 'env | sed "s/=.*/: x/" | grep -v -e _: -e PWD'
    [found] = await rendered(files, shell(tmp_path / "exports", runner, script))
    proxies = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"}
    assert found.keys() <= {"PATH", "HOME", "TMPDIR", "KUBECONFIG", "LC_ALL", "SHLVL", *proxies}
    assert proxies <= found.keys()


async def test_links_that_lead_out_by_way_of_each_other_are_cut(
    files: Files, tmp_path: Path, runner: GitRunner
) -> None:
    (tmp_path / "private").write_text("key: of this person\n")
    files.link("one/two/three/up", "../../..")
    files.link("env/dev/leads-out.yaml", "../../one/two/three/up/../../../private")
    files.link("env/dev/inside.yaml", "../../one/two/three/up/base/deployment.yaml")
    files.link("env/dev/itself.yaml", "itself.yaml")
    script = 'cat "$0/inside.yaml" && ! ls "$0" | grep -e out -e itself'
    [found] = await rendered(files, shell(tmp_path / "exports", runner, script))
    assert found["kind"] == "Deployment"


async def test_endless_output_is_an_error(files: Files, tmp_path: Path, runner: GitRunner) -> None:
    with pytest.raises(RenderError):
        await rendered(files, shell(tmp_path / "exports", runner, "exec cat /dev/zero"))
    assert os.listdir(tmp_path / "exports") == []


@pytest.mark.parametrize("text", [LAUGHS, "[" * 100_000, "a: &a [*a]\n"], ids=["laughs", "nested", "itself"])
async def test_yaml_that_would_take_the_memory_is_an_error(
    files: Files, tmp_path: Path, runner: GitRunner, text: str
) -> None:
    files.commit({"base/deployment.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\nspec:\n {text}"})
    with pytest.raises(RenderError):
        await rendered(files, BuiltInRenderer())
    with pytest.raises(RenderError):
        await rendered(files, shell(tmp_path / "exports", runner, 'cat "$0/../../base/deployment.yaml"'))
    files.commit({"env/dev/kustomization.yaml": text})
    with pytest.raises(RenderError):
        await rendered(files, BuiltInRenderer())


@pytest.mark.skipif(bool(find_walls().missing), reason="the kernel has no walls")
async def test_walls_stand_around_the_program_where_the_kernel_has_them(
    files: Files, tmp_path: Path, runner: GitRunner
) -> None:
    (tmp_path / "private").write_text("key: of this person\n")
    script = f'if cat {tmp_path}/private >/dev/null 2>&1; then echo "key: seen"; else echo "key: hidden"; fi'
    assert await rendered(files, shell(tmp_path / "exports", runner, script)) == [{"key": "seen"}]
    assert await rendered(files, shell(tmp_path / "exports", runner, script, find_walls())) == [{"key": "hidden"}]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")
async def test_kubectl_renders_behind_the_walls(files: Files, tmp_path: Path, runner: GitRunner) -> None:
    renderer = await find_renderer(runner, tmp_path / "exports")
    assert [each["kind"] for each in await rendered(files, renderer)] == ["Deployment"]
