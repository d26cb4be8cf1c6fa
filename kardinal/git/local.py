"""A repository on this machine.

Objects are written straight into its database, where they are harmless until a reference points to them, and the
reference is moved by compare-and-swap (`refs`). There is no fetch and no transfer: what is read is what is there.

This is not a push. Hooks do not run, so that a repository that has some is refused unless that is allowed (`hooks`).
Reflogs are not written, and like Git's own default the reference is flushed to disk but the loose objects are left to
the file system (`core.fsyncObjectFiles` is honoured).

A repository with a work tree is accepted as long as the branch is not checked out: moving that would make the
checked-out files look like a change back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

import pygit2
from pygit2.enums import RepositoryOpenFlag

from kardinal.api.repository_url import RepositoryURL
from kardinal.git.errors import DamagedRepository, GitError, PushRejected, RepositoryUnreachable
from kardinal.git.hooks import refuse_hooks
from kardinal.git.names import branch_of
from kardinal.git.objects import Staging
from kardinal.git.refs import RefStore
from kardinal.git.runner import GitRunner, off_loop
from kardinal.git.watcher import RepositoryPlace

__all__ = ["LocalBackend"]

P = ParamSpec("P")
T = TypeVar("T")


class LocalBackend:
    """A bare repository, or one with a work tree, below a path."""

    def __init__(
        self, url: RepositoryURL, path: str, *, runner: GitRunner, allow_bypassing_hooks: bool = False
    ) -> None:
        self.url = url
        self._path = path
        self._runner = runner
        self._bypasses_hooks = allow_bypassing_hooks

    def use(self, *refs: str) -> None:
        """Nothing to prepare: references are read where they are."""

    async def refresh(self, *, everything: bool = False) -> None:
        """Nothing to learn."""

    async def prepare(self) -> None:
        """Nothing to learn."""

    async def supply(self, ids: frozenset[str]) -> None:
        raise DamagedRepository(f"{self.url.text} lacks object {min(ids)}")

    def hold(self) -> Callable[[], None]:
        return lambda: None

    async def repair(self) -> None:
        """Nothing to do about it: it is the user's."""

    async def close(self) -> None:
        """Nothing is held open."""

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._runner.run(function, *args, **kwargs)

    @off_loop
    def open(self) -> pygit2.Repository:
        flags = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.BARE
        try:
            return pygit2.Repository(self._git_directory(), flags)
        except pygit2.GitError as error:
            if "owner" in str(error):
                raise RepositoryUnreachable(
                    f"{self._path} belongs to another user",
                    remedy=f"Run as its owner, or: git config --global --add safe.directory {self._path}",
                ) from None
            self._git_directory()
            raise RepositoryUnreachable(
                f"{self._path} can not be opened as a Git repository", remedy="Check it with `git fsck`"
            ) from None

    @property
    def refs(self) -> RefStore:
        return RefStore(self._git_directory())

    def tip(self, ref: str) -> str | None:
        found = self.refs.read(ref)
        if found is None:
            self._git_directory()
        return found

    def publish(self, ref: str, *, old: str | None, new: str, staging: Staging) -> None:
        self._refuse_checked_out(ref)
        self._refuse_hooks()
        try:
            staging.flush(new)
            self.refs.update(ref, old=old, new=new)
        except (OSError, pygit2.GitError) as error:
            raise self._unwritable(error) from error

    def remove(self, ref: str, *, old: str) -> None:
        self._refuse_checked_out(ref)
        try:
            self.refs.update(ref, old=old, new=None)
        except OSError as error:
            raise self._unwritable(error) from error

    @off_loop
    def try_push(self, ref: str, *, at: str) -> None:
        self._refuse_checked_out(ref)
        self._refuse_hooks()
        directory = self._git_directory()
        if not os.access(directory, os.W_OK):
            raise self._unwritable(PermissionError(errno.EACCES, os.strerror(errno.EACCES)))

    @off_loop
    def place(self) -> RepositoryPlace:
        """Return where the repository is, or will be."""
        try:
            return RepositoryPlace(self._path, self._git_directory())
        except (RepositoryUnreachable, OSError):
            return RepositoryPlace(self._path, None)

    @off_loop
    def _git_directory(self) -> str:
        """Look each time: a repository that was moved away is worth another attempt, what it lacks is not."""
        return _find_git_directory(Path(self._path))

    def _refuse_checked_out(self, ref: str) -> None:
        directory = Path(self._git_directory())
        work_trees = [place.parent for place in directory.glob("worktrees/*/HEAD")]
        if directory.name == ".git":
            work_trees.append(directory)
        for place in work_trees:
            with suppress(FileNotFoundError):
                if (place / "HEAD").read_text().strip() == f"ref: {ref}":
                    branch = branch_of(ref)
                    raise PushRejected(
                        f"{branch} is checked out in a work tree of {self._path}",
                        remedy="Promote into a bare repository (git clone --bare), or check out another branch there",
                    )

    def _refuse_hooks(self) -> None:
        if not self._bypasses_hooks:
            refuse_hooks(self.open(), path=self._path)

    def _unwritable(self, error: Exception) -> GitError:
        reason = error.strerror if isinstance(error, OSError) else "Git refused to write"
        return GitError(f"{self._path} can not be written: {reason}", remedy="Check its permissions and free space")


def _find_git_directory(path: Path) -> str:
    if not path.is_dir():
        raise RepositoryUnreachable(
            f"there is no repository at {path}", remedy=f"Create one: git init --bare {path}", transient=True
        )
    if (path / ".git").is_file():
        raise RepositoryUnreachable(
            f"{path} is a linked work tree or a submodule", remedy="Name the repository it belongs to"
        )
    directory = path / ".git" if (path / ".git").is_dir() else path
    if not (directory / "HEAD").is_file() or not (directory / "objects").is_dir():
        raise RepositoryUnreachable(
            f"{path} is not a Git repository", remedy=f"Create one: git init --bare {path}", transient=True
        )
    return str(directory)
