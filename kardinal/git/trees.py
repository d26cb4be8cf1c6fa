"""Trees as directories, for programs that read files by path: each tree is extracted once, and never written to.

The name of a directory is the id of its tree, so equal trees are one directory, whatever repository and commit they
come from. A directory appears under its name when it is complete. Each process compares it with the tree before it
first uses it, and extracts it again if it differs, for example after an edit by hand. Several processes may share a
store.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.git.errors import GitError, ObjectsMissing
from kardinal.git.objects import Staging, TreeEntry, check_depth
from kardinal.processes.threads import off_loop

__all__ = ["TreeStore"]

_FILES = 20_000
"""The most files of a tree."""
_BYTES = 256 << 20
"""The most bytes of all files of a tree."""
_EXECUTABLE = 0o100755
_UNFINISHED = ".new-"


@dataclass(frozen=True, slots=True)
class _Place:
    """A file, symbolic link or directory of a tree, by its path."""

    path: str
    entry: TreeEntry


class TreeStore:
    """A directory of extracted trees. May be used by several threads and processes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._verified: set[str] = set()

    @off_loop
    def extract(self, staging: Staging, tree: str) -> Path:
        """Return the directory with the files of a tree. Raises `GitError` for a tree that is not extracted.

        Submodules are empty directories, as in a clone.
        """
        directory = self._directory / tree
        if tree in self._verified and directory.is_dir():
            return directory
        places = _listed(staging, tree)
        if not _matches(directory, places):
            self._replace(directory, staging, places)
        self._verified.add(tree)
        return directory

    def _replace(self, directory: Path, staging: Staging, places: list[_Place]) -> None:
        new = self._directory / f"{_UNFINISHED}{secrets.token_hex(8)}"
        try:
            new.mkdir(mode=0o700, parents=True)
            for place in places:
                _write(new / place.path, place.entry, staging)
            _check_links(new, places)
            if directory.exists():
                # Moved away first, because a directory is not replaced as one step.
                directory.rename(self._directory / f"{new.name}-old")
            try:
                new.rename(directory)
            except OSError:
                if not directory.is_dir():
                    raise
                # Another process was faster, and its directory is as good.
        except OSError as error:
            raise GitError(
                f"{self._directory} can not be written: {error.strerror}", remedy="Check its permissions and free space"
            ) from None
        finally:
            shutil.rmtree(new, ignore_errors=True)
            shutil.rmtree(self._directory / f"{new.name}-old", ignore_errors=True)


def _listed(staging: Staging, tree: str) -> list[_Place]:
    """Return all that a tree holds, parents first; raises `ObjectsMissing` for all missing files at once."""
    places = list(_below(staging, tree, ""))
    files = [place for place in places if not place.entry.is_directory and not _is_submodule(place.entry)]
    if len(files) > _FILES:
        raise GitError(f"a tree has {len(files):,} files; at most {_FILES:,} are extracted")
    missing = frozenset(place.entry.id for place in files if not staging.has(place.entry.id))
    if missing:
        raise ObjectsMissing(missing)
    total = sum(staging.size(place.entry.id) for place in files)
    if total > _BYTES:
        raise GitError(f"a tree has {total:,} bytes; at most {_BYTES:,} are extracted")
    return places


def _below(staging: Staging, tree: str, directory: str) -> Iterator[_Place]:
    check_depth(directory)
    for name, entry in staging.tree(tree).items():
        if name in ("", ".", "..") or "/" in name or name.lower() == ".git":
            raise GitError(f"a tree has a file that may not be called {name[:40]!r}", remedy="Rename it")
        path = f"{directory}/{name}" if directory else name
        yield _Place(path, entry)
        if entry.is_directory:
            yield from _below(staging, entry.id, path)


def _write(path: Path, entry: TreeEntry, staging: Staging) -> None:
    if entry.is_directory or _is_submodule(entry):
        path.mkdir(mode=0o700)
    elif entry.is_symlink:
        os.symlink(os.fsencode(staging.read(entry.id)), os.fsencode(path))
    else:
        mode = 0o555 if entry.mode == _EXECUTABLE else 0o444
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(descriptor, "wb") as file:
            file.write(staging.read(entry.id))
            # The mode of `open` is subject to the umask.
            os.fchmod(file.fileno(), mode)


def _check_links(root: Path, places: list[_Place]) -> None:
    """Refuse symbolic links that lead out of the tree, once all files are there."""
    top = os.path.realpath(root)
    for place in places:
        if place.entry.is_symlink:
            target = os.path.realpath(root / place.path)
            if target != top and not target.startswith(f"{top}{os.sep}"):
                raise GitError(
                    f"{place.path} is a symbolic link that leads out of its repository",
                    remedy="Replace it by the file that it points to",
                )


def _matches(directory: Path, places: list[_Place]) -> bool:
    """Return whether a directory has the files of a tree, and nothing else."""
    if not directory.is_dir():
        return False
    try:
        found = sum(len(names) + len(files) for _, names, files in os.walk(directory))
        return found == len(places) and all(_is(directory / place.path, place.entry) for place in places)
    except OSError:
        return False


def _is(path: Path, entry: TreeEntry) -> bool:
    status = path.lstat()
    if entry.is_directory or _is_submodule(entry):
        return stat.S_ISDIR(status.st_mode)
    if entry.is_symlink:
        return stat.S_ISLNK(status.st_mode) and _blob(os.fsencode(os.readlink(path))) == entry.id
    executable = bool(status.st_mode & 0o100)
    same_mode = stat.S_ISREG(status.st_mode) and executable == (entry.mode == _EXECUTABLE)
    return same_mode and _blob(path.read_bytes()) == entry.id


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()


def _is_submodule(entry: TreeEntry) -> bool:
    return not (entry.is_file or entry.is_directory or entry.is_symlink)


FOREIGN = ForeignBytes(
    "trees that are extracted for a catalog",
    of="contributor",
    size="as Git objects",
    unpacked=f"known from the headers: {mebibytes(_BYTES)} and {_FILES:,} files a tree",
    structure="names are checked; no symbolic link that leads out of the tree",
    time="none: objects are on this machine",
    held="one file",
    decoded="thread",
    tests=("git/test_trees.py",),
)
