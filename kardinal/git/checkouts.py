"""The clones of a user of the command line, read from their objects.

The creator of a directory may have written its Git configuration, which can name programs that `git` starts; a bare
repository can even be committed as plain files. So `git` is never run in a directory that was not created here. libgit2
reads such a clone: it starts no program, fetches nothing, and runs neither hooks nor filters.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType, RepositoryOpenFlag

from kardinal.git.ancestry import only_in
from kardinal.git.errors import CommitNotFound, DamagedRepository, RepositoryUnreachable
from kardinal.git.history import History
from kardinal.git.objects import Staging
from kardinal.processes.threads import off_loop

__all__ = ["Checkout", "LoggedCommit", "commits_between", "lend_objects", "read_checkout", "tip_known_to"]

_FILE_LIMIT = 1 << 20
"""The maximum size in bytes of one file besides the objects and references, such as the configuration."""
_REMOTES_LIMIT = 64
_SHORTEST = 7
"""The minimum number of digits in the id of a listed commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A clone of the user, with or without a work tree.

    `directory`: the path that the user named. `repository`: the directory of its objects and references. `branch`: the
    checked-out branch, if there is one. `remotes`: the URLs of its remotes by their names.
    """

    directory: Path
    repository: Path
    commit: str
    branch: str | None
    bare: bool
    remotes: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCommit:
    """A commit in a list: its shortest id, the first line of its message and the name of its author."""

    id: str
    subject: str
    author: str


@off_loop
def read_checkout(directory: Path) -> Checkout:
    """Return the clone that contains `directory`. Raises `RepositoryUnreachable` and `CommitNotFound`."""
    found = pygit2.discover_repository(str(directory))
    if found is None:
        raise RepositoryUnreachable(f"{directory} is not in a Git repository")
    repository = _common_directory(Path(found))
    for name in ("config", "shallow"):
        _check_file(repository / name)
    opened = _open(Path(found))
    try:
        head = opened.lookup_reference("HEAD").target
        commit = str(opened.lookup_reference("HEAD").resolve().target)
        kind, _ = Staging(opened).header(commit)
    except (KeyError, pygit2.GitError, pygit2.InvalidSpecError, DamagedRepository):
        kind = None
    if kind != ObjectType.COMMIT:
        raise CommitNotFound(f"{directory} has no commit checked out")
    branch = head.removeprefix("refs/heads/") if isinstance(head, str) else None
    return Checkout(
        directory=directory,
        repository=repository,
        commit=commit,
        branch=branch,
        bare=opened.is_bare,
        remotes=_remotes(opened),
    )


@off_loop
def tip_known_to(checkout: Checkout, ref: str) -> str | None:
    """Return the commit of a reference in a clone; None if the clone has no such reference.

    The remote-tracking branch of a branch comes first, because it is newer.
    """
    opened = _open(checkout.repository)
    branch = ref.removeprefix("refs/heads/")
    names = [f"refs/remotes/{remote}/{branch}" for remote in checkout.remotes] if branch != ref else []
    for name in (*names, ref):
        with suppress(KeyError, pygit2.GitError, pygit2.InvalidSpecError):
            return str(opened.lookup_reference(name).resolve().target)
    return None


@off_loop
def lend_objects(checkout: Checkout, directory: Path, refs: Mapping[str, str]) -> None:
    """Create a bare repository with these references that reads the objects of a clone."""
    pygit2.init_repository(str(directory), bare=True)
    Path(directory, "objects", "info", "alternates").write_text(f"{checkout.repository / 'objects'}\n")
    with suppress(FileNotFoundError):
        shutil.copyfile(checkout.repository / "shallow", directory / "shallow")
    lent = pygit2.Repository(str(directory), RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.BARE)
    for name, commit in refs.items():
        lent.references.create(name, commit)


@off_loop
def commits_between(checkout: Checkout, before: str, after: str, *, limit: int) -> list[LoggedCommit]:
    """Return the commits that `after` has and `before` does not have, newest first; empty if one is missing."""
    opened = _open(checkout.repository)
    staging = Staging(opened)
    history = History()
    # Also if the history ends because the clone is shallow.
    with suppress(KeyError, ValueError, pygit2.GitError, DamagedRepository):
        commits = [str(opened.expand_id(name)) for name in (after, before)]
        found = [history.commit(staging, oid) for oid in only_in(staging, *commits)[:limit]]
        return [
            LoggedCommit(id=_short(opened, each.id), subject=each.subject, author=each.author.rpartition(" <")[0])
            for each in found
        ]
    return []


def _short(opened: pygit2.Repository, oid: str) -> str:
    """Return the shortest unique beginning of an id."""
    for length in range(_SHORTEST, len(oid)):
        with suppress(ValueError):
            if str(opened.expand_id(oid[:length])) == oid:
                return oid[:length]
    return oid


def _common_directory(git_directory: Path) -> Path:
    """Return the directory that a linked work tree shares with its repository, or else `git_directory`."""
    file = git_directory / "commondir"
    _check_file(file)
    return (git_directory / file.read_text().strip()).resolve() if file.exists() else git_directory.resolve()


def _check_file(file: Path) -> None:
    """Refuse a file of a repository that may have no end, such as a link to a device."""
    if file.exists() and (not file.is_file() or file.stat().st_size > _FILE_LIMIT):
        raise RepositoryUnreachable(f"{file} is no file of at most {_FILE_LIMIT >> 20} MiB")


def _open(git_directory: Path) -> pygit2.Repository:
    try:
        return pygit2.Repository(str(git_directory), RepositoryOpenFlag.NO_SEARCH)
    except pygit2.GitError as error:
        if "owner" in str(error):
            raise RepositoryUnreachable(
                f"{git_directory} belongs to another user",
                remedy=f"Run as its owner, or: git config --global --add safe.directory {git_directory}",
            ) from None
        raise RepositoryUnreachable(f"{git_directory} can not be opened: check it with `git fsck`") from None


def _remotes(opened: pygit2.Repository) -> dict[str, str]:
    # `remotes` is not used, because it rewrites URLs by `url.<base>.insteadOf`.
    found: dict[str, str] = {}
    for entry in opened.config:
        name = entry.name
        if name.startswith("remote.") and name.endswith(".url") and entry.value and len(found) < _REMOTES_LIMIT:
            found.setdefault(name.removeprefix("remote.").removesuffix(".url"), entry.value)
    return found
