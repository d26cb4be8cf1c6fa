"""Hostile files that are rendered read nothing of ours, fetch nothing, and end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kardinal.git import Repository
from kardinal.rendering.programs import ProgramRenderer, RendererOptions, RenderingBusy
from kardinal.tree.edit import EditError
from tests.git.conftest import Git, until
from tests.support.renderers import CHART, Rendered, helm, kustomize, listening, needs, program, running


async def test_the_program_has_nothing_of_ours(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "s3cr3t")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    program(programs, "kustomize", "/usr/bin/env; /bin/ls -A $HOME $PATH")
    output = (await rendered({"envs/dev/kustomization.yaml": "{}"}, lambda tree: kustomize(renderer, tree))).decode()
    names = {line.partition("=")[0] for line in output.splitlines() if line.partition("=")[0].isupper()}
    assert names - {"PWD", "_", "SHLVL", "OLDPWD"} == {
        "PATH",
        "HOME",
        "TMPDIR",
        "KUBECONFIG",
        "LC_ALL",
        "HELM_NO_PLUGINS",
        "GOMEMLIMIT",
        "GOTRACEBACK",
        "HTTP_PROXY",
        "HTTPS_PROXY",
    }
    assert "s3cr3t" not in output
    assert str(tmp_path / "kubeconfig") not in output


@pytest.mark.parametrize(
    "files",
    [
        {"envs/dev/kustomization.yaml": "resources: [../../../../../../../../etc/passwd]\n"},
        {"envs/dev/kustomization.yaml": "resources: [/etc/passwd]\n"},
        {"envs/dev/kustomization.yaml": "configMapGenerator: [{name: x, files: [/etc/passwd]}]\n"},
        {"envs/dev/kustomization.yaml": "configMapGenerator: [{name: x, files: [../../outside.txt]}]\n"},
        {"envs/dev/kustomization.yaml": "configMapGenerator: [{name: x, envs: [/proc/self/environ]}]\n"},
        {"envs/dev/kustomization.yaml": "openapi: {path: /etc/passwd}\n"},
        {"envs/dev/kustomization.yaml": "patches: [{path: /etc/passwd}]\n"},
        {"envs/dev/kustomization.yaml": "secretGenerator: [{name: x, files: ['file:///etc/passwd']}]\n"},
        {"envs/dev/kustomization.yaml": "resources: ['file:///etc']\n"},
        {
            "envs/dev/kustomization.yaml": "generators: [exec.yaml]\n",
            "envs/dev/exec.yaml": (
                "apiVersion: x/v1\nkind: X\nmetadata:\n  name: x\n  annotations:\n"
                "    config.kubernetes.io/function: |\n      exec: {path: ./steal.sh}\n"
            ),
            "envs/dev/steal.sh": "#!/bin/sh\ncat /etc/passwd\n",
        },
    ],
)
async def test_a_kustomization_reads_nothing_outside_its_directories(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, files: dict[str, str]
) -> None:
    needs(programs, "kustomize")
    with pytest.raises(EditError) as refused:
        await rendered(files | {"outside.txt": "root:x:"}, lambda tree: kustomize(renderer, tree))
    assert "root:x:" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "resources: ['http://127.0.0.1:{port}/x.yaml']",
        "resources: ['git::http://127.0.0.1:{port}/org/repo']",
        "configMapGenerator: [{{name: x, files: ['a=http://127.0.0.1:{port}/x']}}]",
        "patches: [{{path: 'http://127.0.0.1:{port}/x'}}]",
        "openapi: {{path: 'http://127.0.0.1:{port}/x'}}",
        "transformers: ['http://127.0.0.1:{port}/x.yaml']",
        "generators: [plugin.yaml]",
    ],
)
async def test_nothing_is_fetched_unless_it_is_allowed(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, text: str
) -> None:
    needs(programs, "kustomize")
    plugin = (
        "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: x}}\nfiles: ['http://127.0.0.1:{port}/x']\n"
    )
    async with listening() as (port, connections):
        files = {
            "envs/dev/kustomization.yaml": text.format(port=port),
            "envs/dev/plugin.yaml": plugin.format(port=port),
        }
        with pytest.raises(EditError, match=r"not in the repository. .*--allow-remote-bases"):
            await rendered(files, lambda tree: kustomize(renderer, tree))
    assert connections == []


async def test_a_values_file_whose_name_has_commas_makes_helm_read_no_other_file(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, tmp_path: Path
) -> None:
    needs(programs, "helm")
    held = tmp_path / "kubeconfig"
    held.write_text("image: {tag: taken-from-the-agent}\n")
    # A directory "envs/dev/v," makes "envs/dev/v,/<path of the agent>" a path of the repository.
    name = f"envs/dev/v,{held}"
    files = CHART | {"envs/dev/v": "{}", name: "image: {tag: from-the-repository}\n"}
    output = await rendered(files, lambda tree: helm(renderer, tree, values=["envs/dev/v", name]))
    assert b"image: 'r/web:from-the-repository'" in output
    assert b"taken-from-the-agent" not in output


async def test_helm_is_given_no_name_that_others_chose(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    program(programs, "helm", 'echo "$@"; for last; do :; done; /bin/ls -R "${last%/*}"')
    files = {path.replace("charts/web", "charts/w,b"): text for path, text in CHART.items()} | {"a,b.yaml": "{}"}
    output = await rendered(files, lambda tree: helm(renderer, tree, chart="charts/w,b", values=["a,b.yaml"]))
    assert b"," not in output
    assert b"--values" in output


async def test_an_error_of_helm_names_the_files_of_the_repository(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    needs(programs, "helm")
    files = CHART | {"envs/dev/values.yaml": "{"}
    with pytest.raises(EditError, match=r"charts/web: cannot be rendered: .*failed to parse envs/dev/values.yaml"):
        await rendered(files, lambda tree: helm(renderer, tree, values=["envs/dev/values.yaml"]))


async def test_symbolic_links_are_left_out(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, bare: Git, repository: Repository
) -> None:
    needs(programs, "kustomize")
    commit = bare.commit(
        {"envs/dev/kustomization.yaml": "configMapGenerator: [{name: x, files: [link]}]\n"}, branch="l"
    )
    link = bare("hash-object", "-w", "--stdin", input="/etc/passwd")
    kept = bare("ls-tree", f"{commit}:envs/dev")
    envs = bare("mktree", input=f"{kept}\n120000 blob {link}\tlink\n")
    tree = bare(
        "mktree", input=f"040000 tree {bare('mktree', input=f'040000 tree {envs}{chr(9)}dev{chr(10)}')}\tenvs\n"
    )
    linked = bare("commit-tree", tree, "-m", "x")
    bare("update-ref", "refs/heads/linked", linked)
    with pytest.raises(EditError, match="link"):
        await repository.plan(linked, lambda tree: {"x": kustomize(renderer, tree)})
    with pytest.raises(
        EditError, match=r"a chart that is a link|no such file|no Chart.yaml|Chart.yaml file is missing"
    ):
        await repository.plan(linked, lambda tree: {"x": helm(renderer, tree, chart="envs/dev")})
    del rendered


async def test_a_program_that_hangs_is_killed_with_what_it_started(rendered: Rendered, programs: Path) -> None:
    renderer = ProgramRenderer(RendererOptions(deadline=0.5))
    program(programs, "kustomize", "/bin/sleep 600.0125 & wait")
    with pytest.raises(EditError, match=r"envs/dev: rendering takes longer than") as refused:
        await rendered({"envs/dev/kustomization.yaml": "{}"}, lambda tree: kustomize(renderer, tree))
    renderer.close()
    assert not refused.value.transient
    await until(lambda: not running("/bin/sleep", "600.0125"))


async def test_output_without_end_is_cut_off(rendered: Rendered, renderer: ProgramRenderer, programs: Path) -> None:
    program(programs, "kustomize", "exec /bin/cat /dev/zero")
    with pytest.raises(EditError, match=r"envs/dev: renders more than 16 MiB. Render less at once"):
        await rendered({"envs/dev/kustomization.yaml": "{}"}, lambda tree: kustomize(renderer, tree))


async def test_words_without_end_are_cut(rendered: Rendered, renderer: ProgramRenderer, programs: Path) -> None:
    program(
        programs, "kustomize", "/usr/bin/head -c 3000000 /dev/zero | /usr/bin/tr '\\0' x >&2; echo the end >&2; exit 1"
    )
    with pytest.raises(EditError, match="the end") as refused:
        await rendered({"envs/dev/kustomization.yaml": "{}"}, lambda tree: kustomize(renderer, tree))
    assert len(str(refused.value)) < 600


async def test_too_many_files_are_not_written(rendered: Rendered, renderer: ProgramRenderer, programs: Path) -> None:
    program(programs, "kustomize", "echo kind: Thing")
    files = {f"envs/dev/{number}.txt": "" for number in range(5_001)}
    with pytest.raises(EditError, match="needs more than 5,000 files"):
        await rendered(files | {"envs/dev/kustomization.yaml": "{}"}, lambda tree: kustomize(renderer, tree))


@pytest.mark.parametrize("wrong", [{"release": "--post-renderer=x"}, {"namespace": "a b"}, {"chart": "../.."}])
async def test_names_that_are_options_are_refused(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, wrong: dict[str, str]
) -> None:
    program(programs, "helm", "echo kind: Thing")
    with pytest.raises(EditError):
        await rendered(CHART, lambda tree: helm(renderer, tree, **wrong))


async def test_renderers_are_as_many_as_memory_allows_and_the_next_waits(
    rendered: Rendered, programs: Path, bare: Git, repository: Repository
) -> None:
    renderer = ProgramRenderer(RendererOptions(patience=0.1, memory=2 << 30))
    program(programs, "kustomize", "exec /bin/sleep 600.025")
    commits = [bare.commit({"envs/dev/kustomization.yaml": f"# {index}\n"}, branch=f"b{index}") for index in range(3)]
    plans = [
        asyncio.create_task(repository.plan(commit, lambda tree: {"x": kustomize(renderer, tree)}))
        for commit in commits
    ]
    done, _ = await asyncio.wait(plans, return_when=asyncio.FIRST_COMPLETED)
    with pytest.raises(RenderingBusy) as busy:
        await done.pop()
    assert busy.value.transient
    # The moment may be over before the two have begun.
    await until(lambda: len(running("/bin/sleep", "600.025")) == 2)
    renderer.close()
    for result in await asyncio.gather(*plans, return_exceptions=True):
        assert isinstance(result, RenderingBusy)
    await until(lambda: not running("/bin/sleep", "600.025"))
    del rendered
