"""Temporary files in memory, where the machine has room for them: thousands of tests make and delete repositories."""

from __future__ import annotations

import os
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a directory of its own in it, which others cannot read
ROOM = 4 << 30
"""The free bytes in memory that a run may ask for. Its files need a tenth of it."""


def pytest_configure() -> None:
    """Put pytest's directories into memory, unless PYTEST_DEBUG_TEMPROOT, a variable of pytest, names a place."""
    if has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def has_room(directory: Path) -> bool:
    """Tell whether a directory exists, has room, and may hold programs, which tests write and run."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize >= ROOM and not found.f_flag & os.ST_NOEXEC
