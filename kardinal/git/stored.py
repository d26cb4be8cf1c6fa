"""Read the objects of a repository only after checking their size.

An object that a contributor pushes may be a megabyte to transfer and a gigabyte in memory: a file of zeros, a directory
of millions of entries, a commit with an endless message. The size of an object is in its header, which is read first,
and each type has a limit. libgit2 has no limit where it reads objects for itself, for example to compare, merge and
walk. So it is only used to read single objects, in this module.
"""

from __future__ import annotations

from collections.abc import Mapping

import pygit2
from pygit2.enums import ObjectType

from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.git.errors import GitError

__all__ = ["LIMITS", "ObjectTooLarge", "StoredObjects"]

LIMITS: Mapping[int, int] = {
    ObjectType.BLOB: 16 << 20,
    ObjectType.TREE: 4 << 20,
    ObjectType.COMMIT: 1 << 20,
    ObjectType.TAG: 256 << 10,
}
"""The maximum size in bytes of an object that is read; edits have smaller limits (`kardinal/tree/edit.py`)."""

_ID = 40
"""The number of digits of an id; ids in repositories with SHA-256 have more."""

_NAMES: Mapping[int, str] = {
    ObjectType.BLOB: "file",
    ObjectType.TREE: "directory",
    ObjectType.COMMIT: "commit",
    ObjectType.TAG: "tag",
}
_REMEDIES: Mapping[int, str] = {
    ObjectType.BLOB: "Split it",
    ObjectType.TREE: "Put its files into several directories",
    ObjectType.COMMIT: "Take it off the branch",
    ObjectType.TAG: "Name another tag, or a branch",
}


class ObjectTooLarge(GitError):
    """An object that is not read because of its size."""

    def __init__(self, kind: int, oid: str, size: int) -> None:
        super().__init__(
            f"{_NAMES[kind]} {oid} has {size:,} bytes; at most {LIMITS[kind]:,} are read", remedy=_REMEDIES[kind]
        )


class StoredObjects:
    """Read the objects of one repository. Raises `KeyError` and `pygit2.GitError` for an object that cannot be read."""

    def __init__(self, repository: pygit2.Repository) -> None:
        self._odb = repository.odb

    def __contains__(self, oid: str) -> bool:
        return len(oid) == _ID and oid in self._odb

    def header(self, oid: str) -> tuple[int, int]:
        """Return the type and the size in bytes of an object."""
        found: tuple[int, int] = self._odb.read_header(oid)
        return found

    def read(self, oid: str) -> bytes:
        """Return the content of an object; raises `ObjectTooLarge` before it is unpacked."""
        kind, size = self.header(oid)
        if size > LIMITS[kind]:
            raise ObjectTooLarge(kind, oid, size)
        content: bytes = self._odb.read(oid)[1]
        return content

    def write(self, kind: ObjectType, content: bytes) -> None:
        """Store a new object."""
        self._odb.write(kind, content)


FOREIGN = ForeignBytes(
    "objects of Git repositories",
    of="Git writer",
    size="that of the transfer that brings them",
    unpacked="known from the header before an object is read: "
    + ", ".join(f"{mebibytes(LIMITS[kind])} a {name}" for kind, name in _NAMES.items()),
    structure="50,000 entries a directory, 100,000 for one operation",
    time="200,000 commits of a history, 1,000 where a trailer is looked for",
    held="an operation's own; 4 operations at once",
    decoded="thread",
    tests=(
        "attacks/test_git_objects.py::test_a_directory_of_very_many_entries_beside_an_environment_is_not_read",
        "attacks/test_git_objects.py::test_a_directory_that_is_too_large_is_refused_by_its_size",
        "attacks/test_git_objects.py::test_directories_of_too_many_entries_in_all_are_refused",
        "attacks/test_git_objects.py::test_directories_within_directories_end_at_a_depth",
        "attacks/test_git_objects.py::test_a_commit_that_grows_when_it_is_unpacked_is_refused_by_its_size",
        "attacks/test_git_objects.py::test_unchanged_files_are_not_read_by_a_merge",
    ),
)
