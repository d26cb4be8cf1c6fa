"""The files that differ between two commits, below one directory. Runs on a thread.

Directories with equal ids have equal content and are not opened, so the cost depends on the differences only. The
comparison ends when more files differ than a promotion may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pygit2

from kardinal.git.errors import CommitNotFound, ObjectsMissing
from kardinal.git.history import History, contains
from kardinal.git.objects import Staging, TreeEntry, check_depth
from kardinal.processes.threads import off_loop
from kardinal.tree.differences import FileChange, Move
from kardinal.tree.edit import CHANGES_LIMIT, EDITED_LIMIT, TOTAL_READ_LIMIT, EditError, split_path, too_large

__all__ = ["differences"]


class _Pair(NamedTuple):
    """One path that differs, with its entry in each of the two trees."""

    path: str
    before: TreeEntry | None
    after: TreeEntry | None


@off_loop
def differences(
    repository: pygit2.Repository, history: History, tip: str, moves: Sequence[Move], directory: str
) -> list[list[FileChange]]:
    """Return the differences below `directory` for each of `moves`, whose commits must be on the branch at `tip`.

    Paths are relative to the directory. Raises `CommitNotFound`, and `EditError` for a file that a promotion cannot
    change.
    """
    staging = Staging(repository)
    contents = _Contents(staging, directory)
    compared = []
    for move in moves:
        for revision in (move.before, move.after):
            _check_on_branch(repository, tip, revision.removesuffix("^"))
        before, after = (_directory(staging, history, revision, directory) for revision in (move.before, move.after))
        compared.append(_limited(_compare(staging, before, after, "")))
    contents.check(pair for pairs in compared for pair in pairs)
    return [[contents.of(pair) for pair in pairs] for pairs in compared]


def _check_on_branch(repository: pygit2.Repository, tip: str, commit: str) -> None:
    if not contains(repository, tip, commit):
        raise CommitNotFound(
            f"commit {commit[:12]} is not on the branch that configuration is taken from",
            remedy="Merge it there first, or name the branch in update.config.branch of the Pipeline",
        )


def _directory(staging: Staging, history: History, revision: str, directory: str) -> str | None:
    """Return the tree of a directory at a revision; None if there is no such directory."""
    commit = history.commit(staging, revision.removesuffix("^"))
    if revision.endswith("^"):
        if not commit.parents:
            return None
        commit = history.commit(staging, commit.parents[0])
    tree = commit.tree
    for segment in split_path(directory):
        entry = staging.tree(tree).get(segment)
        if entry is not None and entry.is_symlink:
            raise EditError(directory, f"{segment} is a symbolic link", remedy="Name the directory that it points to")
        if entry is None or not entry.is_directory:
            return None
        tree = entry.id
    return tree


def _compare(staging: Staging, before: str | None, after: str | None, directory: str) -> Iterator[_Pair]:
    if before == after:
        return
    check_depth(directory)
    old, new = (staging.tree(tree) if tree is not None else {} for tree in (before, after))
    for name in sorted(old.keys() | new.keys()):
        one = old.get(name)
        other = new.get(name)
        path = f"{directory}{name}"
        if one is not None and other is not None and (one.id, one.is_directory) == (other.id, other.is_directory):
            continue
        yield from _compare(staging, _tree_of(one), _tree_of(other), f"{path}/")
        one, other = (None if entry is None or entry.is_directory else entry for entry in (one, other))
        if one is not None or other is not None:
            yield _Pair(path, one, other)


def _tree_of(entry: TreeEntry | None) -> str | None:
    return entry.id if entry is not None and entry.is_directory else None


def _limited(pairs: Iterator[_Pair]) -> list[_Pair]:
    found = []
    for pair in pairs:
        found.append(pair)
        if len(found) > CHANGES_LIMIT:
            raise EditError(
                pair.path,
                f"not looked at: the commit changes more than {CHANGES_LIMIT:,} files",
                remedy="Name a smaller directory in update.config.from, or promote smaller commits",
            )
    return found


class _Contents:
    """The contents of the files that differ.

    All absent files are found first, so that a mirror fetches them at once.
    """

    def __init__(self, staging: Staging, directory: str) -> None:
        self._staging = staging
        self._directory = directory
        self._left = TOTAL_READ_LIMIT

    def check(self, pairs: Iterable[_Pair]) -> None:
        """Raise `ObjectsMissing` for all absent files, and `EditError` for a file that a promotion cannot change."""
        missing = set[str]()
        for path, *entries in pairs:
            for entry in entries:
                try:
                    self._check(path, entry)
                except ObjectsMissing as error:
                    missing |= error.ids
        if missing:
            raise ObjectsMissing(frozenset(missing))

    def of(self, pair: _Pair) -> FileChange:
        return FileChange(pair.path, self._content(pair.before), self._content(pair.after))

    def _check(self, path: str, entry: TreeEntry | None) -> None:
        if entry is None:
            return
        if not entry.is_file:
            raise EditError(
                "/".join(part for part in (self._directory, path) if part),
                "is a symbolic link or a submodule in the configuration, and only files are merged",
                remedy="Replace it by the file that it points to",
            )
        size = self._staging.size(entry.id)
        if size > EDITED_LIMIT:
            raise too_large(path, size, EDITED_LIMIT, used="merged")
        self._left -= size
        if self._left < 0:
            raise EditError(path, f"not looked at: commits change files of at most {TOTAL_READ_LIMIT:,} bytes in all")

    def _content(self, entry: TreeEntry | None) -> bytes | None:
        return self._staging.read(entry.id) if entry is not None else None
