"""kustomize and helm render the files of a tree, with what the options allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.processes.isolation import Walls
from kardinal.rendering.programs import ProgramRenderer, RendererOptions
from kardinal.rendering.renderer import RenderingUnavailable
from kardinal.tree.edit import EditError
from tests.support.renderers import BASE, CHART, OVERLAY, Rendered, helm, kustomize, listening, needs, program


async def test_a_kustomization_is_rendered_with_its_bases_from_the_files_of_the_tree(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    needs(programs, "kustomize")
    output = await rendered(BASE | {"envs/dev/kustomization.yaml": OVERLAY}, lambda tree: kustomize(renderer, tree))
    assert b"image: r/web:2" in output


async def test_kubectl_takes_the_place_of_kustomize(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    needs(programs, "kubectl")
    (programs / "kustomize").unlink(missing_ok=True)
    output = await rendered(BASE | {"envs/dev/kustomization.yaml": OVERLAY}, lambda tree: kustomize(renderer, tree))
    assert b"image: r/web:2" in output


async def test_a_missing_program_is_named(rendered: Rendered, renderer: ProgramRenderer, programs: Path) -> None:
    for path in programs.iterdir():
        path.unlink()
    with pytest.raises(RenderingUnavailable, match=r"there is no kustomize. Install kustomize or kubectl on the agent"):
        await rendered({"envs/dev/kustomization.yaml": "{}"}, lambda tree: kustomize(renderer, tree))
    with pytest.raises(RenderingUnavailable, match=r"there is no helm. Install helm on the agent"):
        await rendered(CHART, lambda tree: helm(renderer, tree))


async def test_a_chart_is_rendered_with_values_and_set_values_as_text(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    needs(programs, "helm")
    files = CHART | {"envs/dev/values.yaml": "image: {tag: '2'}\n"}
    values = ["envs/dev/values.yaml"]
    output = await rendered(files, lambda tree: helm(renderer, tree, values=values, note="a,image.tag=9 {x}"))
    assert b"name: 'shop', namespace: 'dev'" in output
    assert b"image: 'r/web:2'" in output
    assert b'note: "a,image.tag=9 {x}"' in output


async def test_a_second_run_on_the_same_files_starts_no_program(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    program(programs, "kustomize", "echo kind: Process-$$")
    files = BASE | {"envs/dev/kustomization.yaml": OVERLAY}
    outputs = [
        await rendered(files | {"envs/dev/kustomization.yaml": text}, lambda tree: kustomize(renderer, tree))
        for text in (OVERLAY, OVERLAY, OVERLAY + "\n")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0] != outputs[2]


async def test_a_base_elsewhere_is_fetched_where_that_is_allowed(rendered: Rendered, programs: Path) -> None:
    needs(programs, "kustomize")
    renderer = ProgramRenderer(RendererOptions(remote_bases=True))
    async with listening() as (port, connections):
        text = f"resources: ['http://127.0.0.1:{port}/x.yaml']"
        with pytest.raises(EditError, match="cannot be rendered"):
            await rendered({"envs/dev/kustomization.yaml": text}, lambda tree: kustomize(renderer, tree))
    renderer.close()
    assert connections


async def test_charts_are_inflated_where_that_is_allowed(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    needs(programs, "kustomize", "helm")
    inside = {path.replace("charts/", "envs/dev/charts/"): text for path, text in CHART.items()}
    files = inside | {"envs/dev/kustomization.yaml": "helmCharts: [{name: web, releaseName: shop}]\n"}
    with pytest.raises(EditError, match=r"envs/dev: inflates a Helm chart. .*--allow-helm-inflation"):
        await rendered(files, lambda tree: kustomize(renderer, tree))
    allowed = ProgramRenderer(RendererOptions(helm_inflation=True))
    output = await rendered(files, lambda tree: kustomize(allowed, tree))
    allowed.close()
    assert b"image: r/web:1" in output


async def test_render_error_quotes_the_program_without_our_paths(
    rendered: Rendered, renderer: ProgramRenderer, programs: Path
) -> None:
    needs(programs, "kustomize")
    with pytest.raises(EditError, match=r"envs/dev: cannot be rendered: .*missing.yaml") as refused:
        await rendered(
            {"envs/dev/kustomization.yaml": "configMapGenerator: [{name: x, files: [missing.yaml]}]\n"},
            lambda tree: kustomize(renderer, tree),
        )
    assert "kardinal-render" not in str(refused.value)


async def test_nothing_is_rendered_without_isolation_where_it_is_required(
    rendered: Rendered, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(programs, "helm", "echo kind: Thing")
    monkeypatch.setattr("kardinal.rendering.programs.find_walls", lambda: Walls(seccomp="Function not implemented"))
    for required in (False, True):
        renderer = ProgramRenderer(RendererOptions(require_isolation=required))
        if required:
            with pytest.raises(
                RenderingUnavailable, match=r"seccomp filter cannot be had.*--require-renderer-isolation"
            ):
                await rendered(CHART, lambda tree: helm(renderer, tree))  # noqa: B023 - called at once
        else:
            assert await rendered(CHART, lambda tree: helm(renderer, tree))  # noqa: B023 - called at once
        renderer.close()
