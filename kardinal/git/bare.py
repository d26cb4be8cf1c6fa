"""A new bare repository with its first commit: what a demonstration, a benchmark or a test begins with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pygit2
from pygit2.enums import RepositoryInitFlag

from kardinal.git.names import branch_ref
from kardinal.git.objects import Staging
from kardinal.git.refs import RefStore
from kardinal.git.runner import off_loop
from kardinal.git.tree import apply
from kardinal.runtime.clock import Clock

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
    """Make a bare repository at `path` whose `branch` holds `files`; it must not exist yet."""
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
