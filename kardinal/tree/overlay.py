"""Trees over other trees: with changes on top, and with another tree below a name of the root.

With an `Overlay`, each edit of a sequence sees the changes of the edits before it. A `Mounted` tree is for a program
that reads files of two trees.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from kardinal.tree.edit import (
    CHANGES_LIMIT,
    EDITED_LIMIT,
    TOTAL_EDITED_LIMIT,
    Changes,
    EditError,
    Tree,
    split_path,
    too_large,
)

__all__ = ["Mounted", "Overlay"]


class Overlay:
    """A `Tree` over another tree. The trees returned by `within` share its changes."""

    def __init__(self, tree: Tree | None, *, prefix: str = "", changes: dict[str, bytes | None] | None = None) -> None:
        """Create an overlay. `tree` is None for a directory that exists only in the changes.

        `prefix` and `changes` are for `within`.
        """
        self._tree = tree
        self._prefix = prefix
        self._changes: dict[str, bytes | None] = {} if changes is None else changes
        self._directories: set[str] = {parent for path in self._changes for parent in _parents(path)}
        """Every directory with changes below it, to answer quickly for the many paths without changes."""

    @property
    def changes(self) -> Changes:
        """Return every change so far, by path."""
        return dict(self._changes)

    def snapshot(self) -> Overlay:
        """Return the tree in its present state, which later changes do not affect."""
        return Overlay(self._tree, prefix=self._prefix, changes=dict(self._changes))

    def apply(self, changes: Changes) -> None:
        """Put `changes` on top; raises `EditError` if the promotion exceeds a limit."""
        for path, content in changes.items():
            if content is not None and len(content) > EDITED_LIMIT:
                raise too_large(path, len(content), EDITED_LIMIT, used="written")
            full = "/".join(split_path(path))
            self._changes[full] = content
            self._directories.update(_parents(full))
        if len(self._changes) > CHANGES_LIMIT:
            raise EditError(next(iter(changes)), f"a promotion changes at most {CHANGES_LIMIT:,} files")
        size = sum(len(content) for content in self._changes.values() if content is not None)
        if size > TOTAL_EDITED_LIMIT:
            raise EditError(next(iter(changes)), f"a promotion writes at most {TOTAL_EDITED_LIMIT:,} bytes")

    def read(self, path: str) -> bytes | None:
        full = self._full(path)
        if full in self._changes:
            return self._changes[full]
        return self._tree.read(path) if self._tree is not None else None

    def size(self, path: str) -> int | None:
        full = self._full(path)
        if full in self._changes:
            content = self._changes[full]
            return None if content is None else len(content)
        return self._tree.size(path) if self._tree is not None else None

    def entries(self, directory: str) -> list[str]:
        below = self._tree.entries(directory) if self._tree is not None else []
        if not self._changed_below(directory):
            return below
        start = "/".join(split_path(directory))
        names = {*below, *(rest.partition("/")[0] for rest, _ in self._below(directory))}
        paths = {name: f"{start}/{name}" if start else name for name in names}
        return sorted(name for name, path in paths.items() if self.size(path) is not None or self.is_dir(path))

    def is_dir(self, path: str) -> bool:
        if any(content is not None for _, content in self._below(path)):
            return True
        there = self._tree is not None and self._tree.is_dir(path)
        return there and (not self._changed_below(path) or bool(self.entries(path)) or not split_path(path))

    def identify(self, path: str) -> str | None:
        full = self._full(path)
        if full in self._changes:
            content = self._changes[full]
            return None if content is None else _hash(content)
        below = self._tree.identify(path) if self._tree is not None else None
        if not self._changed_below(path):
            return below
        if not self.is_dir(path):
            return None
        parts = [f"{rest}={'' if content is None else _hash(content)}" for rest, content in sorted(self._below(path))]
        return _hash("\0".join([below or "", *parts]).encode())

    def within(self, directory: str) -> Overlay:
        if not self.is_dir(directory):
            raise EditError(self._full(directory) or ".", "no such directory in the repository")
        there = self._tree is not None and self._tree.is_dir(directory)
        tree = self._tree.within(directory) if self._tree is not None and there else None
        inside = Overlay(tree, prefix=f"{self._full(directory)}/".lstrip("/"))
        inside._changes = self._changes
        inside._directories = self._directories
        return inside

    def _full(self, path: str) -> str:
        return self._prefix + "/".join(split_path(path)) if split_path(path) else self._prefix.rstrip("/")

    def _below(self, directory: str) -> Iterator[tuple[str, bytes | None]]:
        """Yield the changed files below a directory, by the path relative to it."""
        full = self._full(directory)
        if full not in self._directories:
            return
        start = f"{full}/" if full else ""
        for path, content in self._changes.items():
            if path.startswith(start):
                yield path[len(start) :], content

    def _changed_below(self, directory: str) -> bool:
        return next(self._below(directory), None) is not None


def _parents(path: str) -> Iterator[str]:
    """Yield the directories above a path; the root is the empty text."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def _hash(content: bytes) -> str:
    """Return the id that Git gives to a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


class Mounted:
    """A `Tree` that has `mounted` below the name `at`. A listing of its root does not contain `at`."""

    def __init__(self, tree: Tree, *, at: str, mounted: Tree) -> None:
        self._tree = tree
        self._at = at
        self._mounted = mounted

    def read(self, path: str) -> bytes | None:
        tree, inner = self._of(path)
        return tree.read(inner)

    def size(self, path: str) -> int | None:
        tree, inner = self._of(path)
        return tree.size(inner)

    def entries(self, directory: str) -> list[str]:
        tree, inner = self._of(directory)
        return tree.entries(inner)

    def is_dir(self, path: str) -> bool:
        tree, inner = self._of(path)
        return tree.is_dir(inner)

    def identify(self, path: str) -> str | None:
        tree, inner = self._of(path)
        return tree.identify(inner)

    def within(self, directory: str) -> Tree:
        tree, inner = self._of(directory)
        return tree.within(inner)

    def _of(self, path: str) -> tuple[Tree, str]:
        first, *rest = split_path(path) or [""]
        return (self._mounted, "/".join(rest)) if first == self._at else (self._tree, path)
