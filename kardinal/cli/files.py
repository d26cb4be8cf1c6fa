"""Read the files that are named on the command line: only regular files, with a limit on their size.

`kardinal lint` checks manifests that are not trusted yet, for example of a pull request. A symbolic link to `/dev/zero`
in their directory would be read without an end, and a link to a private file of the user would show its lines in
errors.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from kardinal.cli.errors import CommandError

__all__ = ["FILE_LIMIT", "MANIFEST_NAMES", "files_below", "read_file", "read_input", "read_texts"]

MANIFEST_NAMES = (".yaml", ".yml", ".json")

FILE_LIMIT = 16 << 20
"""The maximum size of a file in bytes."""

_FILES_LIMIT = 10_000
"""The maximum number of manifests in a directory and its subdirectories."""

_ENTRIES_LIMIT = 1_000_000
"""The maximum number of entries in a directory and its subdirectories."""


def read_file(path: Path) -> str:
    """Return the text of a file.

    Raises `CommandError` unless it is a readable regular file of at most 16 MiB, in UTF-8.
    """
    try:
        # O_NONBLOCK: opening a named pipe would wait for a writer. O_NOCTTY: a terminal must not become the controlling
        # terminal of this process.
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
    """Return the text of standard input. Raises `CommandError` beyond 16 MiB, or if it is not UTF-8."""
    return _text(sys.stdin.buffer, "standard input")


def read_texts(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file, of `-` (standard input), and of all YAML and JSON in directories."""
    for path in paths:
        if path == Path("-"):
            yield "standard input", read_input()
        else:
            for file in files_below(path) if path.is_dir() else [path]:
                yield str(file), read_file(file)


def files_below(directory: Path) -> Iterator[Path]:
    """Yield the manifests (`MANIFEST_NAMES`) in a directory and its subdirectories, sorted by path.

    Raises `CommandError` for a symbolic link to a file outside the directory, and for a directory with too many
    entries.
    """
    root = directory.resolve()
    found = list[Path]()
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
