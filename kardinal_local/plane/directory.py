"""Lock the directory of a plane, and tell which process serves it.

The process that serves a directory holds a lock on a file in it, which contains its process id; the operating system
releases the lock when the process dies, however it dies. Apart from `plane`, so that asking who serves a directory does
not import a server.
"""

from __future__ import annotations

import fcntl
import os
from io import FileIO
from pathlib import Path

from kardinal_local.plane.errors import DirectoryInUse

__all__ = ["acquire", "holder"]

_NAME = "lock"


def holder(directory: Path) -> int | None:
    """The process that serves `directory`, if any."""
    try:
        with FileIO(directory / _NAME, "r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return _written_holder(lock)
    except FileNotFoundError:
        pass
    return None


def acquire(directory: Path) -> FileIO:
    """The lock of `directory`, ours until it is closed."""
    lock = FileIO(os.open(directory / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = _written_holder(lock)
        lock.close()
        raise DirectoryInUse(
            f"{directory} is served by process {pid or 'unknown'} already: use that one, or stop it first"
        ) from None
    os.ftruncate(lock.fileno(), 0)
    lock.write(f"{os.getpid()}\n".encode())
    return lock


def _written_holder(lock: FileIO) -> int | None:
    lock.seek(0)
    text = lock.read(32).strip()
    return int(text) if text.isdigit() else None
