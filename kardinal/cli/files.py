"""Reading the files that a command is given: regular ones of bounded size.

Manifests are looked at before they are trusted: those of a pull request, say. A link to `/dev/zero` in a directory of
them would never end, and one to a file of the reader's would show its lines.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kardinal.cli.errors import CommandError

__all__ = ["FILE_LIMIT", "MANIFEST_NAMES", "files_below", "read_file", "read_input"]

MANIFEST_NAMES = (".yaml", ".yml", ".json")

FILE_LIMIT = 16 << 20
"""Bytes of a file that is read."""

_FILES_LIMIT = 10_000
"""Files of one directory, and of those below it, that are read."""

_ENTRIES_LIMIT = 1_000_000
"""Entries of directories among which files are looked for."""


def read_file(path: Path) -> str:
    """Return the text of a regular file of at most 16 MiB; `CommandError` for anything else, with the reason."""
    try:
        # A pipe without a writer would be waited for; a terminal must not become ours.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CommandError(
                f"{path} is not a regular file", remedy="Name a file, or give its text by standard input."
            )
        return _text(file, str(path))


def read_input() -> str:
    """Return the text of standard input; at most 16 MiB."""
    return _text(sys.stdin.buffer, "standard input")


def files_below(directory: Path) -> Iterator[Path]:
    """Yield the manifests of a directory and of those below it, by name.

    A link to what is outside the directory is an error: its text is not what was asked for.
    """
    root, found = directory.resolve(), list[Path]()
    entries = 0
    for parent, names, files in os.walk(directory):
        entries += len(names) + len(files)
        found += (Path(parent, name) for name in files if name.endswith(MANIFEST_NAMES))
        if entries > _ENTRIES_LIMIT or len(found) > _FILES_LIMIT:
            raise CommandError(
                f"{directory} has more than {_FILES_LIMIT:,} manifests, or {_ENTRIES_LIMIT:,} entries",
                remedy="Name directories below it.",
            )
    for file in sorted(found):
        if file.is_symlink() and not _resolved(file).is_relative_to(root):
            raise CommandError(
                f"{file} is a link to what is outside {directory}", remedy="Name the file that it leads to."
            )
        yield file


def _resolved(file: Path) -> Path:
    try:
        return file.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise CommandError(f"{file} leads nowhere: {getattr(error, 'strerror', None) or error}") from None


def _text(file: BinaryIO, name: str) -> str:
    content = file.read(FILE_LIMIT + 1)
    if len(content) > FILE_LIMIT:
        raise CommandError(f"{name} has more than {FILE_LIMIT:,} bytes", remedy="Split it.")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise CommandError(f"{name} is not text in UTF-8: byte {error.start:,} is none of it") from None
