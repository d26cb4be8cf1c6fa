"""Helm and kustomize as inputs; skipped where the programs are not built."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import Layout, Merged, RenderJob
from tests.catalog.compilations import Compilation, jsonnet_input
from tests.catalog.conftest import StartEngine
from tests.support.renderers import install, needs

CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: word\nversion: 1.0.0\n",
    "chart/values.yaml": "word: own\n",
    "chart/templates/a.yaml": "kind: A\nword: {{ .Values.word | quote }}\nn: {{ .Release.Name }}\n---\n---\nkind: B\n",
    "chart/templates/empty.yaml": "{{ if false }}x{{ end }}\n",
    "chart/crds/c.yaml": "kind: C\n",
    "chart/templates/tests/t.yaml": "kind: T\nmetadata:\n  annotations:\n    helm.sh/hook: test\n",
}
DEPLOYMENT = "kind: Deployment\napiVersion: apps/v1\nspec:\n  replicas: 1\nmetadata:\n  name: App\n"
KUSTOMIZATION = "resources: [deployment.yaml]\nnamespace: own\n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "bin"
    install(directory)
    needs(directory, "helm", "kustomize")
    monkeypatch.setenv("PATH", str(directory))


def helm_input(**options: Any) -> dict[str, Any]:
    options = {"helm_params": {"name": "r"}, **options}
    return jsonnet_input("chart", input_type="helm", **options)


def kustomize_input(path: str = "base", **options: Any) -> dict[str, Any]:
    return jsonnet_input(path, input_type="kustomize", **options)


def wrapper(*arguments: str, source: str = "dependencies/web/base") -> dict[str, Any]:
    return {
        "input_type": "external",
        "input_paths": ["kustomize-wrapper"],
        "output_path": "web",
        "env_vars": {"INPUT_DIR": source},
        "args": list(arguments),
    }


@pytest.mark.usefixtures("programs")
def test_chart_is_rendered(compilation: Compilation) -> None:
    compilation.tree("dependencies/web", {**CHART, "v.yaml": "word: file\n"})
    rendered = compilation.render(helm_input(), helm_input(output_path="2", helm_values={"word": "0123456789"}))
    assert rendered.files == {
        "web/word/crds/c.yaml": b"kind: C\n",
        "web/word/templates/a.yaml": b"kind: A\nn: r\nword: own\n---\nkind: B\n",
        "2/word/crds/c.yaml": b"kind: C\n",
        "2/word/templates/a.yaml": b"kind: A\nn: r\nword: 0123456789\n---\nkind: B\n",
    }


@pytest.mark.usefixtures("programs")
async def test_programs_run_behind_the_walls_of_a_worker(compilation: Compilation, start_engine: StartEngine) -> None:
    files = {"base/kustomization.yaml": KUSTOMIZATION, "base/deployment.yaml": DEPLOYMENT}
    tree = compilation.tree("dependencies/web", CHART | files)
    entries = [helm_input(), kustomize_input()]
    parameters = {"_base_directory": "dependencies/web", "kapitan": {"compile": entries}}
    (rendered,) = await start_engine(compilation.trees).render(
        Layout({"dependencies/web": tree}, {}),
        [RenderJob("web", "web")],
        {"web": Merged((), (), parameters)},
    )
    assert set(rendered.files) == {
        "web/app-deployment.yaml",
        "web/word/crds/c.yaml",
        "web/word/templates/a.yaml",
    }


@pytest.mark.usefixtures("programs")
def test_values_of_files_come_last(compilation: Compilation) -> None:
    compilation.tree("dependencies/web", {**CHART, "v.yaml": "word: file\n"})
    entry = helm_input(
        helm_values={"word": "input"},
        helm_values_files=["dependencies/web/v.yaml"],
        helm_params={"name": "r", "output_file": "all.yaml", "include_crds": False},
    )
    assert compilation.render(entry).files == {"web/all.yaml": b"kind: A\nn: r\nword: file\n---\nkind: B\n"}


@pytest.mark.usefixtures("programs")
def test_references_in_a_chart_are_replaced(compilation: Compilation) -> None:
    compilation.tree("dependencies/web", CHART)
    entry = helm_input(helm_values={"word": "?{vaultkv:a/b}"})
    rendered = compilation.render(entry, references={"?{vaultkv:a/b}": "?{vaultkv:a/b:12345678}"})
    assert b"word: ?{vaultkv:a/b:12345678}\n" in rendered.files["web/word/templates/a.yaml"]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    "flag",
    ["post_renderer", "set", "set_file", "values", "output_dir", "repo", "kubeconfig", "api-versions", "validate"],
)
def test_flag_of_helm_is_refused(compilation: Compilation, flag: str) -> None:
    compilation.tree("dependencies/web", CHART)
    with pytest.raises(CatalogError, match=f"helm_params.{flag} is not allowed"):
        compilation.render(helm_input(helm_params={"name": "r", flag: "x"}))


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"helm_params": {}}, "no name of the release"),
        ({"helm_values_files": ["none.yaml"]}, "no file of values"),
        ({"helm_values_files": ["/etc/hostname"]}, "leads out"),
        ({"helm_params": {"name": "--post-renderer=x"}}, "helm: "),
        ({"helm_params": {"name": "r", "output_file": "../x"}}, "leads out"),
    ],
)
def test_wrong_chart_input_is_an_error(compilation: Compilation, options: dict[str, Any], message: str) -> None:
    compilation.tree("dependencies/web", CHART)
    with pytest.raises(CatalogError, match=message) as raised:
        compilation.render(helm_input(**options))
    assert str(compilation.root.parent) not in str(raised.value)


@pytest.mark.usefixtures("programs")
def test_failing_chart_names_its_template(compilation: Compilation) -> None:
    compilation.tree("dependencies/web", {**CHART, "chart/templates/a.yaml": '{{ fail "no" }}'})
    with pytest.raises(CatalogError, match=r"word/templates/a.yaml") as raised:
        compilation.render(helm_input())
    assert "/render-" not in str(raised.value)


@pytest.mark.usefixtures("programs")
def test_kustomization_is_rendered_with_namespace_and_patches(compilation: Compilation) -> None:
    compilation.tree("dependencies/web", {"base/kustomization.yaml": KUSTOMIZATION, "base/deployment.yaml": DEPLOYMENT})
    target = {"kind": "Deployment", "name": "App"}
    patch = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "App"}, "spec": {"replicas": 5}}
    entry = kustomize_input(namespace="n", patches={"p": {"patch": patch, "target": target}})
    assert compilation.render(entry).files == {
        "web/app-deployment.yaml": (
            b"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: App\n  namespace: n\nspec:\n  replicas: 5\n"
        )
    }


@pytest.mark.usefixtures("programs")
def test_wrapper_renders_what_an_input_has_written(compilation: Compilation) -> None:
    compilation.tree(
        "dependencies/web",
        {
            "main.jsonnet": "{ kustomization: { resources: ['../base'], namePrefix: 'pre-' } }",
            "base/kustomization.yaml": KUSTOMIZATION,
            "base/deployment.yaml": DEPLOYMENT,
        },
    )
    rendered = compilation.render(
        jsonnet_input(output_path="dependencies/web/overlay"),
        wrapper("${compiled_target_dir}/made", source="dependencies/web/overlay"),
        parameters={"_kustomize_wrapper": "kustomize-wrapper"},
    )
    assert list(rendered.files) == ["web/made/apps_v1_deployment_pre-app.yaml"]
    assert b"name: pre-App\n" in rendered.files["web/made/apps_v1_deployment_pre-app.yaml"]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (wrapper(), "no output or no INPUT_DIR"),
        (wrapper("../made"), "leads out"),
        (wrapper("/etc/made"), "leads out"),
        (wrapper("made", "--enable-exec"), "'--enable-exec' of kustomize"),
        (wrapper("made", "--load-restrictor=LoadRestrictionsNone"), "of kustomize is not allowed"),
        (wrapper("made", source="inventory"), "outside of the component"),
        (wrapper("made", source="/etc"), "leads out"),
        (kustomize_input("none", ignore_missing=False), "nothing at the input path"),
        (kustomize_input(patches={"../p": {"patch": {}, "target": {}}}), "'../p' is not one"),
        (kustomize_input(patches_json={"x": 1}), "no effect"),
    ],
)
def test_wrong_kustomize_input_is_an_error(compilation: Compilation, entry: dict[str, Any], message: str) -> None:
    compilation.tree("dependencies/web", {"base/kustomization.yaml": KUSTOMIZATION, "base/deployment.yaml": DEPLOYMENT})
    with pytest.raises(CatalogError, match=message) as raised:
        compilation.render(entry, parameters={"_kustomize_wrapper": "kustomize-wrapper"})
    assert raised.value.remedy


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    "item", ["https://example.com/a.yaml", "github.com/a/b?ref=v1", "git@github.com:a/b", "../../other"]
)
def test_base_that_would_be_fetched_is_refused(compilation: Compilation, item: str) -> None:
    compilation.tree(
        "dependencies/web",
        {"base/kustomization.yaml": "resources: [sub]\n", "base/sub/kustomization.yaml": f"resources: ['{item}']\n"},
    )
    with pytest.raises(CatalogError, match="no file of the component") as raised:
        compilation.render(kustomize_input())
    assert raised.value.kind == "refused"


@pytest.mark.parametrize(
    ("entry", "program"),
    [(helm_input(), "helm"), (kustomize_input(), "kustomize"), (wrapper("made"), "kustomize")],
)
def test_missing_program_is_told_before_anything_is_rendered(
    compilation: Compilation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any], program: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    compilation.component(main_jsonnet="error 'rendered'")
    with pytest.raises(CatalogError, match=f"needs {program}, which is not installed"):
        compilation.render(jsonnet_input(), entry, parameters={"_kustomize_wrapper": "kustomize-wrapper"})


def test_program_gets_no_environment(compilation: Compilation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "helm"
    program.write_text("#!/bin/sh\nPATH=/usr/bin:/bin\nenv | cut -d= -f1 | sort >&2\nexit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TOKEN", "secret")
    compilation.tree("dependencies/web", CHART)
    with pytest.raises(CatalogError) as raised:
        compilation.render(helm_input())
    assert raised.value.problem.split()[1:] == ["HELM_NO_PLUGINS", "HOME", "PATH", "PWD", "TMPDIR"]
