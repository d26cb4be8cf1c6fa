"""The contract of an edit: a pure function from a tree to the files it wants changed.

An edit may run several times, on newer trees, so it reads only the tree that it is given. Planning and landing run the
same edit. `kardinal.git` implements the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kardinal.objects.errors import KardinalError

__all__ = [
    "CHANGES_LIMIT",
    "EDITED_LIMIT",
    "READ_LIMIT",
    "TOTAL_EDITED_LIMIT",
    "TOTAL_READ_LIMIT",
    "Changes",
    "Edit",
    "EditError",
    "Tree",
    "split_path",
    "too_large",
]

EDITED_LIMIT = 1 << 20
"""The maximum size in bytes of a file that an edit changes or creates."""

READ_LIMIT = 4 << 20
"""The maximum size in bytes of a file, or of a directory listing, that an edit reads."""

TOTAL_READ_LIMIT = 64 << 20
"""The most bytes that one edit reads in total."""

CHANGES_LIMIT = 5_000
"""The most files that one promotion changes."""

TOTAL_EDITED_LIMIT = 64 << 20
"""The most bytes in all files that one promotion changes or creates."""


class EditError(KardinalError):
    """An edit that cannot be made. `path` is the file or directory that its author has to change."""

    def __init__(self, path: str, message: str, *, remedy: str = "") -> None:
        super().__init__(f"{path}: {message}", remedy=remedy)
        self.path = path


def too_large(path: str, size: int, limit: int, *, used: str) -> EditError:
    """Return the error about a file over a limit. `used` is the verb of the message, such as "edited"."""
    return EditError(
        path, f"has {size:,} bytes; files of at most {limit:,} are {used}", remedy="Split it, or name another path"
    )


def split_path(path: str) -> list[str]:
    """Return the segments of a path inside a repository; the empty path and `.` are its root. Raises `EditError`."""
    segments = [segment for segment in path.split("/") if segment not in ("", ".")]
    if path.startswith("/") or "\\" in path or "\0" in path:
        raise EditError(path, "not a relative path inside the repository")
    for segment in segments:
        if segment == "..":
            raise EditError(path, "`..` is not allowed in a path")
        if segment.lower() == ".git":
            raise EditError(path, "`.git` is not part of the repository's content")
    return segments


class Tree(Protocol):
    """The files an edit may read. Raises `EditError` for a path that leaves the tree, or beyond the limits above."""

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None if there is no such file."""
        ...

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes without reading it; None if there is no such file."""
        ...

    def entries(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; empty if there is no such directory."""
        ...

    def is_dir(self, path: str) -> bool: ...

    def identify(self, path: str) -> str | None:
        """Return an id of a file or directory: equal ids mean equal content. None if there is no such path."""
        ...

    def within(self, directory: str) -> Tree:
        """Return the tree below `directory`; reads through it cannot leave the directory."""
        ...


Changes = Mapping[str, bytes | None]
"""Path -> the new content of a file, or None to delete it. The mode of a file is kept."""

Edit = Callable[[Tree], Changes]
"""A function from a tree to the changes in it."""
