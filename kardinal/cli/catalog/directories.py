"""Write a catalog into a directory of the user, of which `manifests/`, `refs/` and the lock belong to the catalog."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kardinal.catalog.lock import LOCK_FILE
from kardinal.cli.errors import CommandError
from kardinal.git.diff import unified
from kardinal.git.values import ChangedFile
from kardinal.processes.threads import off_loop

__all__ = ["DirectoryChanges", "diff_catalog", "write_catalog"]

_OWNED = ("manifests", "refs")


@dataclass(frozen=True, slots=True)
class DirectoryChanges:
    """The files that were written and deleted, by path, sorted."""

    added: Sequence[str]
    changed: Sequence[str]
    deleted: Sequence[str]

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.deleted)

    def __str__(self) -> str:
        if not self:
            return "unchanged"
        return f"{len(self.added)} added, {len(self.changed)} changed, {len(self.deleted)} deleted"

    def document(self) -> dict[str, Any]:
        """Return the changes for programs."""
        return {"added": list(self.added), "changed": list(self.changed), "deleted": list(self.deleted)}


@off_loop
def diff_catalog(directory: Path, files: Mapping[str, bytes]) -> str:
    """Return the difference between the catalog in a directory and `files`, as `git diff` shows it."""
    try:
        before = {path: (directory / path).read_bytes() for path in _owned_files(directory)}
    except OSError as error:
        raise CommandError(f"{error.filename or directory} can not be read: {error.strerror}") from None
    paths = sorted(path for path in {*before, *files} if before.get(path) != files.get(path))
    return unified([ChangedFile(path, before.get(path), files.get(path)) for path in paths])


@off_loop
def write_catalog(directory: Path, files: Mapping[str, bytes]) -> DirectoryChanges:
    """Make the catalog's part of a directory equal to `files`, with the lock last.

    Files in `manifests/` whose names begin with a dot stay, as does everything beside the catalog. Raises
    `CommandError` where the directory has a symbolic link in the place of a directory of the catalog.
    """
    try:
        there = {path: directory / path for path in _owned_files(directory)}
        added: list[str] = []
        changed: list[str] = []
        for path, content in sorted(files.items(), key=lambda item: item[0] == LOCK_FILE):
            before = there.pop(path, None)
            if before is None or before.is_symlink() or before.read_bytes() != content:
                (changed if before is not None else added).append(path)
                _write(directory, path, content)
        deleted = sorted(there)
        for path in deleted:
            there[path].unlink(missing_ok=True)
            _remove_empty(directory, there[path].parent)
    except OSError as error:
        raise CommandError(f"{error.filename or directory} can not be written: {error.strerror}") from None
    return DirectoryChanges(sorted(added), sorted(changed), deleted)


def _owned_files(directory: Path) -> Iterator[str]:
    for owned in _OWNED:
        root = directory / owned
        if root.is_symlink():
            raise CommandError(f"{root} is a symbolic link", remedy="Remove it, or name another --output")
        for parent, names, files in os.walk(root):
            # Links to directories are files of a catalog that may not be there.
            links = [name for name in names if Path(parent, name).is_symlink()]
            for name in (*files, *links):
                path = Path(parent, name).relative_to(directory)
                if not (owned == "manifests" and any(part.startswith(".") for part in path.parts)):
                    yield path.as_posix()
    if (directory / LOCK_FILE).is_file():
        yield LOCK_FILE


def _write(directory: Path, path: str, content: bytes) -> None:
    """Write a file as one step, so that no reader sees half of it."""
    place = directory / path
    directory.mkdir(parents=True, exist_ok=True)
    parts = path.split("/")[:-1]
    for depth in range(1, len(parts) + 1):
        step = directory.joinpath(*parts[:depth])
        if step.is_symlink() or step.is_file():
            step.unlink()
        step.mkdir(exist_ok=True)
    new = directory / f".kardinal-{secrets.token_hex(8)}"
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), "wb") as file:
            file.write(content)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        new.replace(place)
    finally:
        new.unlink(missing_ok=True)


def _remove_empty(directory: Path, parent: Path) -> None:
    """Remove directories of the catalog that are empty now."""
    while parent != directory:
        try:
            parent.rmdir()
        except OSError:
            return
        parent = parent.parent
