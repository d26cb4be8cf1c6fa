"""Kustomizations that are not read whole are not rendered: they might fetch from anywhere."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from kardinal.rendering.programs import ProgramRenderer, RendererOptions
from kardinal.tree.edit import EditError
from tests.support.renderers import Rendered, kustomize, listening, needs

PLUGIN = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: x}}\nfiles: ['a={url}']\n"
GENERATES = "configMapGenerator: [{{name: x, files: ['a={url}']}}]\n"
FOOLED = {
    "a second document": ("# one\n---\n" + GENERATES + "---\n{{}}\n", "not one mapping in one document"),
    "a document after an end": ("{{}}\n...\n" + GENERATES, "not valid YAML"),
    "a tag": ("configMapGenerator: [{{name: x, files: [!!binary {encoded}]}}]\n", "the tag !!binary"),
    "a tag of its own": ("configMapGenerator: [{{name: x, files: [!x 'a={url}']}}]\n", "the tag !x"),
    "a null that is a text": ("configMapGenerator: [{{name: x, files: [!!null 'a={url}']}}]\n", "the tag !!null"),
    "a key twice": (GENERATES + "configMapGenerator: []\n", "the key 'configMapGenerator' is there twice"),
    "another case": ("RESOURCES: ['github.com/o/r']\n", "the field 'RESOURCES' is spelt otherwise"),
    "more than 1,000 aliases": (
        "commonAnnotations: {{a: &a b}}\nconfigMapGenerator: [{{name: x, files: ['a={url}'], literals: ["
        + "*a, " * 1_001
        + "]}}]\n",
        "repeats itself too often",
    ),
    "a key that is a mapping": ("? {{a: b}}\n: c\n" + GENERATES, "a key of a mapping is not plain text"),
}
"""Name -> a kustomization that fetches, and why it is refused."""
DISGUISED = {
    "in a text": '{{"namePrefix": "a\nkind: CustomResourceDefinition\n",\n' + GENERATES.strip() + "}}\n",
    "quoted": '"kind": "CustomResourceDefinition"\n' + GENERATES,
}
"""Kustomizations with the line by which definitions of custom resources are left out of a reading of images."""
IN_A_PLUGIN = {
    "more than 1,000 aliases": ("x: &x y\nl: [" + "*x, " * 1_001 + "]\n" + PLUGIN, "repeats itself too often"),
    "a tag": (PLUGIN.replace("'a={url}'", "!!binary {encoded}"), "the tag !!binary"),
    "a definition's line": ("'kind': \"CustomResourceDefinition\"\n" + PLUGIN, "the key 'kind' is there twice"),
}


def filled(text: str, port: int) -> str:
    url = f"http://127.0.0.1:{port}/x"
    return text.format(url=url, encoded=base64.b64encode(f"a={url}".encode()).decode())


@pytest.mark.parametrize("name", list(FOOLED))
@pytest.mark.parametrize("allowed", [False, True])
async def test_a_kustomization_that_is_not_read_whole_is_refused_by_name(
    rendered: Rendered, programs: Path, name: str, allowed: bool
) -> None:
    needs(programs, "kustomize")
    text, reason = FOOLED[name]
    renderer = ProgramRenderer(RendererOptions(remote_bases=allowed))
    async with listening() as (port, connections):
        files = {"envs/dev/kustomization.yaml": filled(text, port)}
        with pytest.raises(EditError) as refused:
            await rendered(files, lambda tree: kustomize(renderer, tree))
    renderer.close()
    assert connections == []
    said = str(refused.value)
    assert said.startswith("envs/dev: cannot be rendered, because it was not read whole: envs/dev/kustomization.yaml: ")
    assert reason in said
    assert "Write it plainly" in said


@pytest.mark.parametrize("name", list(DISGUISED))
async def test_a_kustomization_cannot_look_like_a_definition_of_custom_resources(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, name: str
) -> None:
    needs(programs, "kustomize")
    async with listening() as (port, connections):
        files = {"envs/dev/kustomization.yaml": filled(DISGUISED[name], port)}
        with pytest.raises(EditError, match=r"takes in a=http://127.0.0.1:\d+/x, which is not in the repository"):
            await rendered(files, lambda tree: kustomize(renderer, tree))
    assert connections == []


@pytest.mark.parametrize("name", list(IN_A_PLUGIN))
@pytest.mark.parametrize("place", ["file", "directory", "text"])
async def test_a_plugin_that_is_not_read_whole_is_refused_by_name(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path, name: str, place: str
) -> None:
    needs(programs, "kustomize")
    text, reason = IN_A_PLUGIN[name]
    async with listening() as (port, connections):
        plugin = filled(text, port)
        files = {"envs/dev/kustomization.yaml": "generators: [plugin.yaml]\n", "envs/dev/plugin.yaml": plugin}
        if place == "directory":
            files = {
                "envs/dev/kustomization.yaml": "generators: [../plugins]\n",
                "envs/plugins/kustomization.yaml": "resources: [plugin.yaml]\n",
                "envs/plugins/plugin.yaml": plugin,
            }
        elif place == "text":
            lines = "".join(f"    {line}\n" for line in plugin.splitlines())
            files = {"envs/dev/kustomization.yaml": f"generators:\n  - |\n{lines}"}
        with pytest.raises(EditError) as refused:
            await rendered(files, lambda tree: kustomize(renderer, tree))
    assert connections == []
    assert "not read whole: " in str(refused.value)
    assert reason in str(refused.value)


async def test_a_base_that_cannot_be_found_is_refused_by_name(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    needs(programs, "kustomize")
    for reference in ("gh:o/r", "../../gone", "a\\b"):
        files = {"envs/dev/kustomization.yaml": f"resources: ['{reference}']\n"}
        with pytest.raises(EditError, match="not read whole: "):
            await rendered(files, lambda tree: kustomize(renderer, tree))
