"""Our edits render as those of `kustomize edit set image`, and touch no more lines.

On 100 kustomizations of our own, and on those of others that `make test-corpus` fetches.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from hack.renderers.assets import find
from hack.renderers.corpus import fetched, kustomizations
from kardinal.git import GitRunner, Repositories
from kardinal.rendering.programs import ProgramRenderer, RendererOptions
from kardinal.tree.edit import Tree
from kardinal.tree.overlay import Overlay
from tests.corpus.comparison import Comparison, Figures, compare
from tests.corpus.conftest import FIGURES
from tests.corpus.generated import generated
from tests.support.clock import VirtualClock

pytestmark = pytest.mark.timeout(900)
FROM_OTHERS = 100
_WHOLE = bool(os.environ.get("CORPUS"))
"""Whether everything is compared, which takes minutes."""
_SAMPLED = 11
"""The distance of those that are compared otherwise: in ten of them is every workload, layer and entry."""


@pytest.fixture
def kustomize() -> Path:
    found = find("kustomize")
    if found is None:
        pytest.skip("there is no kustomize: `make renderers` builds it")
    return found


@pytest.fixture
def renderer(kustomize: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ProgramRenderer]:
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "kustomize").symlink_to(kustomize)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"), prepend=":")
    renderer = ProgramRenderer(RendererOptions())
    yield renderer
    renderer.close()


@pytest.fixture
async def repositories(clock: VirtualClock, tmp_path: Path) -> AsyncIterator[Repositories]:
    runner = GitRunner()
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=True)
    yield repositories
    await repositories.close()
    runner.close()


def test_edits_of_generated_kustomizations_are_those_of_kustomize(
    kustomize: Path, renderer: ProgramRenderer, record_property: Callable[[str, object], None]
) -> None:
    figures = Figures()
    some = 1 if _WHOLE else _SAMPLED
    for name, files in itertools.islice(generated(), 0, 100, some):
        tree = Overlay(None, changes={path: text.encode() for path, text in files.items()})
        figures.comparisons.append(compare(tree, "env", place=name, kustomize=kustomize, renderer=renderer))
    record_property(FIGURES, f"generated: {figures}")
    assert figures.wrong == []
    assert figures.count("same") == len(range(0, 100, some)), figures


async def test_edits_of_kustomizations_of_others_are_those_of_kustomize(
    kustomize: Path,
    renderer: ProgramRenderer,
    repositories: Repositories,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    modules = fetched() if _WHOLE else {}
    if not modules:
        pytest.skip("kustomizations of others take minutes: `make test-corpus` fetches and compares them")
    figures = Figures()
    for number, (module, directory) in enumerate(modules.items()):
        repository = repositories.open(str(_repository(directory, tmp_path / f"{number}.git")))
        head = await repository.head("main")
        for place in kustomizations(directory):

            def compared(tree: Tree, place: str = place, module: str = module) -> Comparison:
                return compare(tree, place, place=f"{module}/{place}", kustomize=kustomize, renderer=renderer)

            figures.comparisons.append(await repository.examine(head.commit, compared))
    record_property(FIGURES, f"of others: {figures}")
    assert figures.wrong == []
    assert figures.count("same") >= FROM_OTHERS, figures


def _repository(module: Path, path: Path) -> Path:
    """Make a repository of the files of a module, but those of its program."""
    git = ["git", f"--git-dir={path}", f"--work-tree={module}", "-c", "user.name=x", "-c", "user.email=x"]
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", path], check=True)
    subprocess.run([*git, "-c", "core.bare=false", "add", "--force", "--", ".", ":!*.go"], cwd=module, check=True)
    subprocess.run([*git, "-c", "core.bare=false", "commit", "--quiet", "--message=x"], cwd=module, check=True)
    return path
