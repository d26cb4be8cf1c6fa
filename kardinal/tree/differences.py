"""The difference between two commits of a repository, file by file."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "FileChange",
    "Move",
]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that differs between two commits. Its content is None in a commit that does not have the file."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Move:
    """The difference between two revisions.

    `<commit>^` is the first parent of a commit, or the empty tree if it has none.
    """

    before: str
    after: str
