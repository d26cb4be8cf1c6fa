"""The files that a template may read: those of the compilation's directory, and those that it wrote itself.

The directory holds a few files and symbolic links to trees (`values.Layout`). Paths are relative to it, with `/`, such
as `dependencies/nginx/component/main.jsonnet`; a template never learns where the directory lies. Each read follows
symbolic links to their end first, and that end must be below the directory or one of the trees that it links to: a
component may link to its own files, not to the host's.

Files that inputs of an instance have written take precedence over the directory; later inputs and filters of the same
instance read them. Nothing is written to the directory itself.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kardinal.catalog.errors import CatalogError
from kardinal.objects.text import cut

__all__ = ["FILE_LIMIT", "SEARCH_PATHS", "Files", "confined"]

SEARCH_PATHS = (".", "dependencies", "vendor")
"""The directories in which paths of inputs, imports and native functions are sought, in this order."""
FILE_LIMIT = 8 << 20
"""The most bytes of one file that is read or written."""
_FILES_LIMIT = 20_000
"""The most files of one directory that is walked."""
_MAGIC = frozenset("*?[")


def confined(path: str) -> str:
    """Return a path in its shortest form; `a/../b/` becomes `b`. Raises `CatalogError` if it leaves the directory."""
    shortest = posixpath.normpath(path)
    if path.startswith("/") or shortest == ".." or shortest.startswith("../") or "\0" in path:
        raise CatalogError(
            "refused",
            f"the path {cut(path, 200)!r} leads out of the directory of the compilation",
            remedy="Name a file of the component, of a library or of the inventory by its relative path",
        )
    return shortest


@dataclass(frozen=True, slots=True)
class _Place:
    """The end of the symbolic links of a path, and its mode."""

    path: Path
    mode: int


class Files:
    """The files below the directory `root`, with those that were written since."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._trees = frozenset([self._root, *_linked(self._root)])
        self._written: dict[str, bytes] = {}
        self._directories: set[str] = set()
        self._places: dict[str, _Place | None] = {".": _Place(self._root, stat.S_IFDIR)}

    def write(self, path: str, content: bytes) -> None:
        """Let later reads find a file."""
        path = confined(path)
        self._written[path] = content
        while path := posixpath.dirname(path):
            self._directories.add(path)

    def is_file(self, path: str) -> bool:
        path = confined(path)
        return path in self._written or ((place := self._locate(path)) is not None and stat.S_ISREG(place.mode))

    def is_directory(self, path: str) -> bool:
        path = confined(path)
        return path in self._directories or ((place := self._locate(path)) is not None and stat.S_ISDIR(place.mode))

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises `FileNotFoundError`, and `CatalogError` if it is too large."""
        path = confined(path)
        if path in self._written:
            return self._written[path]
        place = self._locate(path)
        if place is None or not stat.S_ISREG(place.mode):
            raise FileNotFoundError(path)
        with place.path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
        if len(content) > FILE_LIMIT:
            raise CatalogError(
                "limit", f"the file {path} has more than {FILE_LIMIT >> 20} MiB", remedy="Split it into several files"
            )
        return content

    def read_text(self, path: str) -> str:
        """Return a file as text. Raises `FileNotFoundError`, and `CatalogError` if it is not UTF-8."""
        try:
            return self.read(path).decode()
        except UnicodeDecodeError as error:
            raise CatalogError(
                "render",
                f"the file {path} is not UTF-8 (byte {error.start + 1})",
                remedy="Save it as UTF-8, or use the input type copy for files that are not text",
            ) from None

    def is_executable(self, path: str) -> bool:
        place = None if confined(path) in self._written else self._locate(confined(path))
        return place is not None and bool(place.mode & stat.S_IXUSR)

    def names(self, directory: str) -> list[str]:
        """Return the names of the files and directories in a directory, sorted; none if there is no such directory."""
        directory = confined(directory)
        place = self._locate(directory)
        names = set(os.listdir(place.path)) if place is not None and stat.S_ISDIR(place.mode) else set[str]()
        prefix = "" if directory == "." else f"{directory}/"
        for written in (*self._written, *self._directories):
            if written.startswith(prefix):
                names.add(written[len(prefix) :].partition("/")[0])
        return sorted(names)

    def walk(self, directory: str) -> Iterator[str]:
        """Yield the paths of all files below a directory, relative to it. Raises `CatalogError` for too many."""
        count = 0
        pending: list[tuple[str, frozenset[_Place | None]]] = [("", frozenset())]
        while pending:
            below, above = pending.pop()
            above |= {self._locate(confined(posixpath.join(directory, below)))} - {None}
            for name in self.names(posixpath.join(directory, below)):
                path = posixpath.join(below, name)
                full = confined(posixpath.join(directory, path))
                count += 1
                if count > _FILES_LIMIT:
                    raise CatalogError(
                        "limit",
                        f"the directory {cut(directory, 200)} has more than {_FILES_LIMIT:,} files",
                        remedy="Name a smaller directory",
                    )
                if self.is_file(full):
                    yield path
                elif self.is_directory(full) and self._locate(full) not in above:
                    pending.append((path, above))
                else:
                    raise CatalogError(
                        "render",
                        f"{cut(full, 200)} is a symbolic link that leads nowhere, or to a directory that contains it",
                        remedy="Replace the link by the file, or remove it",
                    )

    def find(self, path: str) -> str | None:
        """Return the first of the search paths below which a path exists, joined with it; None if there is none."""
        for base in SEARCH_PATHS:
            found = confined(posixpath.join(base, path))
            if self.is_file(found) or self.is_directory(found):
                return found
        return None

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that a pattern stands for below all search paths, sorted.

        `*`, `?` and `[…]` stand for characters of one name; names that begin with a dot are not found by them.
        """
        found = set[str]()
        for base in SEARCH_PATHS:
            paths = ["."]
            for part in confined(posixpath.join(base, pattern)).split("/"):
                paths = [step for path in paths for step in self._steps(path, part)]
            found |= set(paths)
        return sorted(found)

    def _steps(self, directory: str, part: str) -> list[str]:
        if not _MAGIC & set(part):
            path = posixpath.normpath(posixpath.join(directory, part))
            return [path] if self.is_file(path) or self.is_directory(path) else []
        names = [name for name in self.names(directory) if not name.startswith(".") or part.startswith(".")]
        return [posixpath.normpath(posixpath.join(directory, name)) for name in fnmatch.filter(names, part)]

    def _locate(self, path: str) -> _Place | None:
        """Return the end of the symbolic links of a path; None if there is nothing. Trees never change meanwhile."""
        if path not in self._places:
            parent, name = posixpath.split(path)
            directory = self._locate(parent or ".")
            self._places[path] = self._followed(path, directory.path / name) if directory else None
        return self._places[path]

    def _followed(self, path: str, place: Path) -> _Place | None:
        """Return the end of `place`, whose directory is no link. Raises `CatalogError` if it is outside."""
        try:
            status = place.lstat()
            if stat.S_ISLNK(status.st_mode):
                place = place.resolve(strict=True)
                status = place.lstat()
        except (OSError, RuntimeError):
            return None
        if self._trees.isdisjoint((place, *place.parents)):
            raise CatalogError(
                "refused",
                f"{cut(path, 200)} is a symbolic link that leads out of its repository",
                remedy="Replace the link by the file",
            )
        return _Place(place, status.st_mode)


def _linked(directory: Path) -> Iterator[Path]:
    """Yield the ends of the symbolic links of the layout, not of those in the trees that they lead to."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield Path(entry.path).resolve()
            elif entry.is_dir(follow_symlinks=False):
                yield from _linked(Path(entry.path))
