"""A repository whose files a test gives, and the commits it makes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest

from kardinal.git import GitRunner, Repositories, Repository, TreeView
from tests.cli.conftest import cli
from tests.support.clock import VirtualClock
from tests.support.repository import GitRepository, create_repository

__all__ = ["cli"]

T = TypeVar("T")


class Files:
    """A bare repository, seen as the simulator sees it and changed as another process would."""

    def __init__(self, repository: Repository, bare: GitRepository) -> None:
        self.repository = repository
        self.bare = bare

    def commit(self, files: Mapping[str, str]) -> str:
        """Put these files on top; returns the commit."""
        return self.bare.commit(files)

    def link(self, path: str, target: str) -> str:
        """Put a symbolic link on top; returns the commit."""
        script = (
            "commit refs/heads/main\ncommitter x <x@example.com> now\ndata 4\nlink\nfrom refs/heads/main^0\n"
            f"M 120000 inline {path}\ndata {len(target)}\n{target}\n"
        )
        self.bare.git("fast-import", "--quiet", "--date-format=now", stdin=script)
        return self.bare.head()

    async def read(self, function: Callable[[TreeView], T]) -> T:
        """Return what `function` makes of the files at the head."""
        return await self.repository.inspect(self.bare.head(), function)


@pytest.fixture
def runner() -> Iterator[GitRunner]:
    runner = GitRunner(workers=2)
    yield runner
    runner.close()


@pytest.fixture
async def files(tmp_path: Path, runner: GitRunner, clock: VirtualClock) -> AsyncIterator[Files]:
    """Yield an overlay `env/dev` on `base`, and `env/prod` on `base` and `shared`."""
    bare = create_repository(
        tmp_path / "gitops.git",
        {
            "base/kustomization.yaml": "resources: [deployment.yaml]\n",
            "base/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\n",
            "shared/kustomization.yaml": "resources: [config.yaml]\n",
            "shared/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\n",
            "env/dev/kustomization.yaml": "namespace: dev\nresources: [../../base]\n",
            "env/prod/kustomization.yaml": "namespace: prod\nresources: [../../base, ../../shared]\n",
            "README.md": "hello\n",
        },
    )
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=True)
    yield Files(repositories.open(bare.url), bare)
    await repositories.close()
