"""Files for secrets of a child that must not be in its arguments or environment variables, for example credentials.

On Linux they are anonymous memory of this process (`memfd_create`), which the child inherits and opens by number below
`/proc`. On other systems, such as macOS, programs that open the same number share the read position, and a second
reader would find the file empty. There the files are in a directory that only this user can enter, until the child has
ended.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

__all__ = ["PrivateFile", "PrivateFiles"]

_FIRST_FREE = 20
"""The lowest number of an inherited file: shells use one-digit numbers, and internally some higher ones."""


@dataclass(frozen=True, slots=True)
class PrivateFile:
    """A file that a child, and the processes that it starts, can read.

    `path` is for the child and for processes that inherit its files, for example `/proc/self/fd/20`. `word` is for a
    command line of a shell that the child runs, whose own children may have closed the file: `/proc/$PPID/fd/20`.
    """

    path: str
    word: str


class PrivateFiles:
    """A context manager for the private files of one child process; they are removed at its end.

    `numbers` are the open files that the child must inherit.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._stack = ExitStack()
        self._directory: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, content: str) -> PrivateFile:
        """Create a file with this content."""
        if hasattr(os, "memfd_create"):
            number = self._nameless(content.encode())
            self.numbers.append(number)
            return PrivateFile(f"/proc/self/fd/{number}", f"/proc/$PPID/fd/{number}")
        if self._directory is None:
            self._directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="kardinal-")))
        file = self._directory / str(len(list(self._directory.iterdir())))
        file.touch(mode=0o600)  # ssh refuses a private key that others can read
        file.write_text(content)
        return PrivateFile(str(file), shlex.quote(str(file)))

    def _nameless(self, content: bytes) -> int:
        made = os.memfd_create("kardinal", os.MFD_CLOEXEC)
        self._stack.callback(os.close, made)
        os.fchmod(made, 0o600)
        with open(made, "wb", closefd=False) as file:
            file.write(content)
        number = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
        self._stack.callback(os.close, number)
        return number
