"""Children take shares of the memory that the container has, and one that wants more ends alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kardinal.git import Repository
from kardinal.processes.memory_shares import available_memory, children_memory
from kardinal.rendering.programs import ProgramRenderer, RendererOptions, renderer_memory
from kardinal.tree.edit import EditError
from tests.git.conftest import Git, until
from tests.support.renderers import CHART, Rendered, helm, kustomize, needs, program, running

MIB = 1 << 20
GREEDY = '{{ len (repeat 1200000000 "x") }}\n'
DOUBLING = '{{ $text := "x" }}{{ range until 40 }}{{ $text = cat $text $text }}{{ end }}\n'


def machine(directory: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 * MIB),
        (
            {
                "proc/self/cgroup": "0::/kubepods/pod1/c1\n",
                "sys/fs/cgroup/kubepods/pod1/memory.max": "268435456\n",
                "sys/fs/cgroup/kubepods/pod1/c1/memory.max": "max\n",
            },
            256 * MIB,
        ),
        (
            {
                "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/docker/c1\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728\n",
            },
            128 * MIB,
        ),
    ],
    ids=["v2", "v2 of a host", "v1 in a container"],
)
def test_the_limit_of_the_container_is_found(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert available_memory(machine(tmp_path, files)) == expected


def test_without_a_limit_it_is_the_memory_of_the_machine(tmp_path: Path) -> None:
    unlimited = {"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{(1 << 63) - 1}"}
    assert available_memory(tmp_path) == available_memory(machine(tmp_path, unlimited)) > 256 * MIB


@pytest.mark.parametrize("available", [128 * MIB, 512 * MIB, 1024 * MIB, 3 << 30, 64 << 30])
def test_children_take_half_of_the_memory_at_most(available: int) -> None:
    at_once, each = renderer_memory(available)
    assert at_once >= 1
    assert at_once * each + children_memory(available) <= available // 2


@pytest.mark.parametrize("template", [GREEDY, DOUBLING])
async def test_a_chart_that_needs_too_much_memory_is_refused_and_others_are_rendered(
    rendered: Rendered, programs: Path, bare: Git, repository: Repository, template: str
) -> None:
    needs(programs, "helm")
    renderer = ProgramRenderer(RendererOptions(memory=2 << 30))
    greedy = bare.commit(CHART | {"charts/web/templates/web.yaml": template}, branch="greedy")
    honest = bare.commit(CHART, branch="honest")

    def plan(commit: str) -> asyncio.Task[object]:
        return asyncio.create_task(repository.plan(commit, lambda tree: {"x": helm(renderer, tree)}))

    refused, made = await asyncio.gather(plan(greedy), plan(honest), return_exceptions=True)
    renderer.close()
    assert isinstance(refused, EditError)
    assert str(refused).startswith("charts/web: needs more than 256 MiB of memory to be rendered. Render less at once")
    assert not refused.transient
    assert not isinstance(made, BaseException)
    del rendered


async def test_memory_of_a_renderer_includes_its_children(rendered: Rendered, programs: Path) -> None:
    renderer = ProgramRenderer(RendererOptions(memory=128 * MIB))
    # Less than one process may map, and more than a quarter of the memory in two.
    keeping = "/bin/cat /dev/zero | /usr/bin/tail -c 20000123"
    program(programs, "kustomize", f"{keeping} & {keeping}")
    with pytest.raises(EditError, match=r"envs/dev: needs more than 32 MiB"):
        await rendered({"envs/dev/kustomization.yaml": "{}"}, lambda tree: kustomize(renderer, tree))
    renderer.close()
    await until(lambda: not running("/usr/bin/tail", "-c", "20000123"))
