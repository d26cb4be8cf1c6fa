"""The files that match a pattern in a tree: `*` and `?` within a path segment, `**` for any number of segments.

A directory that matches stands for every file below it. Patterns come from Pipelines and files from repositories, so
the number of both is limited. A symbolic link that would have to be followed is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from kardinal.tree.edit import EditError, Tree

__all__ = ["FILES_LIMIT", "files_of", "fixed_part", "is_pattern"]

FILES_LIMIT = 1_000
"""The most files that one pattern may match."""
_LOOKED_AT_LIMIT = 20_000
"""The most names of files and directories that one pattern may be compared with."""
_DEPTH_LIMIT = 64


def is_pattern(path: str) -> bool:
    """Return whether a path is a pattern instead of the name of one file or directory."""
    return "*" in path or "?" in path


def fixed_part(pattern: str) -> str:
    """Return the directory above all matches of a pattern, as far as it is known; empty for the root."""
    segments = _segments(pattern)
    fixed = next((index for index, segment in enumerate(segments) if is_pattern(segment)), len(segments))
    return "/".join(segments[:fixed])


def files_of(tree: Tree, pattern: str) -> list[str]:
    """Return the sorted paths of the files that match `pattern`; empty if there are none. Raises `EditError`."""
    found: set[str] = set()
    for path in _Search(tree, pattern).files():
        found.add(path)
        if len(found) > FILES_LIMIT:
            raise EditError(pattern, f"names more than {FILES_LIMIT:,} files", remedy="Name fewer in each pattern")
    return sorted(found)


def _segments(path: str) -> tuple[str, ...]:
    return tuple(segment for segment in path.split("/") if segment not in ("", "."))


class _Search:
    def __init__(self, tree: Tree, pattern: str) -> None:
        self._tree = tree
        self._pattern = pattern
        self._looked_at = 0
        self._seen: set[tuple[str, tuple[str, ...]]] = set()

    def files(self) -> Iterator[str]:
        yield from self._matches("", _segments(self._pattern))

    def _matches(self, directory: str, rest: tuple[str, ...]) -> Iterator[str]:
        """Yield the files below `directory` that match the segments `rest`."""
        if (directory, rest) in self._seen:
            return
        self._seen.add((directory, rest))
        if not rest:
            yield from self._below(directory)
            return
        first = rest[0]
        after = rest[1:]
        if first == "**" and not after:
            yield from self._below(directory)
            return
        if first == "**":
            yield from self._matches(directory, after)
            for path in self._entries(directory):
                if self._tree.is_dir(path):
                    yield from self._matches(path, rest)
            return
        for path in self._entries(directory) if is_pattern(first) else [_joined(directory, first)]:
            if is_pattern(first) and not _matches_name(path.rpartition("/")[2], first):
                continue
            if self._tree.is_dir(path):
                yield from self._matches(path, after)
            elif not after and self._is_file(path):
                yield path

    def _below(self, directory: str) -> Iterator[str]:
        for path in self._entries(directory):
            if self._tree.is_dir(path):
                yield from self._below(path)
            elif self._is_file(path):
                yield path

    def _is_file(self, path: str) -> bool:
        return self._tree.size(path) is not None

    def _entries(self, directory: str) -> list[str]:
        if directory.count("/") > _DEPTH_LIMIT:
            raise EditError(directory, f"is more than {_DEPTH_LIMIT} levels deep", remedy="Name another directory")
        names = self._tree.entries(directory)
        self._looked_at += len(names)
        if self._looked_at > _LOOKED_AT_LIMIT:
            raise EditError(
                self._pattern,
                f"has to be compared with more than {_LOOKED_AT_LIMIT:,} names",
                remedy="Begin it with the names of directories",
            )
        return [_joined(directory, name) for name in names]


def _joined(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def _matches_name(name: str, pattern: str) -> bool:
    # Brackets are literal here, because many tools write names with them.
    return fnmatchcase(name, pattern.replace("[", "[[]"))
