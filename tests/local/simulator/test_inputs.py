"""The inputs of rendering a directory: all of them, so that nothing stale is taken for current, and no more."""

from __future__ import annotations

import pytest

from kardinal_local.simulator.inputs import find_inputs, unchanged
from tests.local.simulator.conftest import Files

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"


async def _changes(files: Files, change: dict[str, str], *, path: str = "env/dev") -> bool:
    """Return whether a commit changes what rendering `path` reads."""
    inputs = await files.read(lambda tree: find_inputs(tree, path))
    assert inputs is not None
    files.commit(change)
    return not await files.read(lambda tree: unchanged(tree, inputs))


@pytest.mark.parametrize(
    "path", ["base/deployment.yaml", "base/kustomization.yaml", "base/new.yaml", "env/dev/kustomization.yaml"]
)
async def test_every_directory_that_is_reached_counts(files: Files, path: str) -> None:
    assert await _changes(files, {path: f"# changed\n{CONFIG_MAP}"})


@pytest.mark.parametrize("path", ["README.md", "env/prod/kustomization.yaml", "shared/config.yaml"])
async def test_file_that_is_not_reached_does_not_count(files: Files, path: str) -> None:
    assert not await _changes(files, {path: "# changed\n"})


@pytest.mark.parametrize(
    "overlay",
    [
        "components: [../../c]\n",
        "bases: [../../c]\n",
        "transformers: [../../c]\n",
        "someFieldOfTomorrow: {deep: [../../c]}\n",
        "resources: [../../b]\n",
    ],
)
async def test_directories_are_followed_from_whatever_field_through_each_other(files: Files, overlay: str) -> None:
    files.commit(
        {
            "env/dev/kustomization.yaml": overlay,
            "b/kustomization.yml": "components: [../c]\n",
            "c/Kustomization": "configMapGenerator: [{name: x, files: [x.txt]}]\n",
            "c/x.txt": "1\n",
        }
    )
    assert await _changes(files, {"c/x.txt": "2\n"})


async def test_a_file_elsewhere_counts(files: Files) -> None:
    files.commit({"env/dev/kustomization.yaml": "resources: [../../base, ../../shared/config.yaml]\n"})
    assert await _changes(files, {"shared/config.yaml": CONFIG_MAP})


async def test_a_directory_below_counts_with_what_it_reaches(files: Files) -> None:
    files.commit(
        {
            "env/dev/kustomization.yaml": "resources: [sub]\n",
            "env/dev/sub/kustomization.yaml": "bases: [../../../shared]\n",
        }
    )
    assert await _changes(files, {"shared/config.yaml": CONFIG_MAP})


async def test_a_directory_that_was_not_there_counts_when_it_comes(files: Files) -> None:
    assert await _changes(files, {"env/new/kustomization.yaml": "resources: []\n"}, path="env/new")


async def test_the_whole_repository_may_be_one_directory(files: Files) -> None:
    files.commit({"kustomization.yaml": "resources: [base]\n"})
    assert await _changes(files, {"README.md": "changed\n"}, path=".")


@pytest.mark.parametrize(
    "overlay",
    [
        "resources: [https://example.com/x.yaml]\n",
        "resources: [github.com/acme/base?ref=v1]\n",
        "resources: ['git@example.com:acme/base']\n",
        "components: [../../not-there]\n",
        "patches: [{path: 'https://example.com/patch.yaml'}]\n",
        "helmCharts: [{name: x, repo: 'https://charts.example.com'}]\n",
        "resources: [\n",
    ],
)
async def test_inputs_outside_the_repository_are_not_known(files: Files, overlay: str) -> None:
    files.commit({"env/dev/kustomization.yaml": overlay})
    assert await files.read(lambda tree: find_inputs(tree, "env/dev")) is None


@pytest.mark.parametrize(
    ("path", "leads_to"), [("env/dev/x.yaml", "../../README.md"), ("base/self", "."), ("env/dev/x", "/etc")]
)
async def test_a_link_in_a_directory_is_not_followed_but_not_known(files: Files, path: str, leads_to: str) -> None:
    files.link(path, leads_to)
    assert await files.read(lambda tree: find_inputs(tree, "env/dev")) is None


async def test_a_link_on_the_way_is_not_known(files: Files) -> None:
    files.link("current", "env")
    assert await files.read(lambda tree: find_inputs(tree, "current/dev")) is None
    assert await files.read(lambda tree: find_inputs(tree, "env/dev")) is not None


@pytest.mark.parametrize(
    "overlay",
    [
        "commonAnnotations: {docs: 'https://example.com/docs'}\n",
        "configMapGenerator: [{name: x, literals: ['URL=https://example.com']}]\n",
        'patches: [{target: {kind: Deployment}, patch: \'[{"op": "add", "path": "/a", "value": "http://x"}]\'}]\n',
        "patches:\n  - patch: |-\n      kind: Deployment\n      metadata: {name: app, annotations: {a: 'http://x'}}\n",
        "images: [{name: ghcr.io/acme/app, newName: mirror/app}]\n",
    ],
)
async def test_text_that_looks_like_a_url_is_no_input(files: Files, overlay: str) -> None:
    files.commit({"env/dev/kustomization.yaml": f"resources: [../../base]\n{overlay}"})
    assert set(await files.read(lambda tree: find_inputs(tree, "env/dev")) or ()) == {"env/dev", "base"}


async def test_aliases_of_aliases_end(files: Files) -> None:
    levels = [f"a{level}: &a{level} [*a{level - 1}, *a{level - 1}]\n" for level in range(1, 40)]
    files.commit({"env/dev/kustomization.yaml": "a0: &a0 [../../base]\n" + "".join(levels)})
    assert "base" in (await files.read(lambda tree: find_inputs(tree, "env/dev")) or ())
