"""Create a bare repository with a first commit, for demonstrations, benchmarks and tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pygit2
from pygit2.enums import RepositoryInitFlag

from kardinal.clock import Clock
from kardinal.git.names import branch_ref
from kardinal.git.objects import Staging
from kardinal.git.refs import RefStore
from kardinal.git.tree import apply
from kardinal.processes.threads import off_loop

__all__ = ["create_bare_repository"]


@off_loop
def create_bare_repository(
    path: Path,
    files: Mapping[str, bytes],
    *,
    branch: str = "main",
    message: str = "Begin",
    clock: Clock,
) -> None:
    """Create a bare repository at `path`, which must not exist yet, whose `branch` contains `files`."""
    repository = pygit2.init_repository(
        str(path),
        flags=RepositoryInitFlag.BARE | RepositoryInitFlag.MKPATH | RepositoryInitFlag.NO_REINIT,
        initial_head=branch,
    )
    staging = Staging(repository)
    tree = apply(staging, staging.add_tree({}), files)
    commit = staging.add_commit(tree=tree, parent=None, message=f"{message}\n", time=clock.now())
    staging.flush(commit)
    RefStore(repository.path).update(branch_ref(branch), old=None, new=commit)
