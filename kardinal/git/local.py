"""The backend of a repository on this machine.

Objects are written directly into its database, where they do no harm until a reference points to them, and the
reference is moved by compare-and-swap (`refs`). There is no fetch and no transfer: reads see the present state.

This is not a push. Hooks do not run, so a repository with hooks is refused unless that is allowed: an owner who
protects a branch by a hook, or starts a program with one, relies on it. Running the hook is no alternative, because
that executes code of the repository with the rights of the program that promotes. Reflogs are not written. As in Git's
default, the reference is flushed to disk, but loose objects are left to the file system (`core.fsyncObjectFiles` is
respected).

A repository with a work tree is accepted if the branch is not checked out: moving a checked-out branch would make its
files look like a change that reverts the commit.
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

from kardinal.git.errors import DamagedRepository, GitError, PushRejected, RepositoryUnreachable
from kardinal.git.names import branch_of
from kardinal.git.objects import Staging
from kardinal.git.refs import RefStore
from kardinal.git.runner import GitRunner
from kardinal.git.watcher import RepositoryPlace
from kardinal.processes.threads import off_loop
from kardinal.tree.repository_url import RepositoryURL

__all__ = ["LocalBackend"]

P = ParamSpec("P")
T = TypeVar("T")

_PUSH_HOOKS = ("pre-receive", "update", "proc-receive", "post-receive", "post-update", "reference-transaction")
_HOOKS_PATH = "core.hooksPath"
"""The setting that names another directory of hooks."""


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
        """Do nothing, because references are read directly."""

    async def refresh(self, *, everything: bool = False) -> None:
        """Do nothing, because there is no copy to refresh."""

    async def prepare(self) -> None:
        """Do nothing, because there is no copy to refresh."""

    async def supply(self, ids: frozenset[str]) -> None:
        raise DamagedRepository(f"{self.url.text} lacks object {min(ids)}")

    def hold(self) -> Callable[[], None]:
        return lambda: None

    async def repair(self) -> None:
        """Do nothing, because the repository belongs to the user."""

    async def close(self) -> None:
        """Do nothing, because nothing is kept open."""

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
        """Return the path of the repository, and its Git directory if it exists."""
        try:
            return RepositoryPlace(self._path, self._git_directory())
        except (RepositoryUnreachable, OSError):
            return RepositoryPlace(self._path, None)

    @off_loop
    def _git_directory(self) -> str:
        """Return the Git directory; it is searched each time, because the repository may have been moved away."""
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
            _check_hooks(self.open(), path=self._path)

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


@off_loop
def _check_hooks(repository: pygit2.Repository, *, path: str) -> None:
    """Raise `PushRejected` if a push to the repository would run hooks; `path` is its name in the message."""
    directory = _hooks_directory(repository)
    there = [name for name in _PUSH_HOOKS if _runs(directory / name)]
    if there:
        raise PushRejected(
            f"{path} has hooks that a promotion would bypass: {', '.join(there)} in {directory}",
            remedy="Promote to it through a Git server (https or ssh), remove the hooks, or start with "
            "--allow-bypassing-hooks if nothing relies on them",
        )


def _hooks_directory(repository: pygit2.Repository) -> Path:
    """Return the directory in which Git looks for hooks; a relative path is relative to the Git directory."""
    own = Path(repository.path)
    try:
        chosen = repository.config[_HOOKS_PATH]
    except KeyError:
        chosen = None
    return own / Path(chosen).expanduser() if chosen else own / "hooks"


def _runs(hook: Path) -> bool:
    return hook.is_file() and os.access(hook, os.X_OK)
