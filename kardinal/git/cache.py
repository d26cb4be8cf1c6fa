"""The directory of mirrors on disk.

A mirror's directory is named by a hash of URL, credentials and owner, the namespace that it is for: what one
credential may read is not found by another, and what one namespace brings in takes nothing from another. The cache
belongs to one process at a time, which holds a lock on it, because two writers would repair each other's mirrors away.
Everything in it can be fetched again, so what has not been used for long is deleted when the cache is opened.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import threading
from pathlib import Path

from kardinal.api.repository_url import RepositoryURL
from kardinal.git.credentials import Credentials
from kardinal.git.errors import GitError
from kardinal.git.runner import off_loop

__all__ = ["MAX_AGE", "Cache"]

MAX_AGE = 7 * 24 * 3600.0
"""Seconds without a fetch after which a mirror is deleted, and after which one in use is made anew."""


class Cache:
    """A directory of mirrors."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._claiming = threading.Lock()
        self._lock: int | None = None

    def path(self, url: RepositoryURL, credentials: Credentials | None, owner: str) -> Path:
        """Return the directory of a repository's mirror, which need not exist yet."""
        parts = (owner, url.text, *((credentials.key,) if credentials else ()))
        return self._directory / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}.git"

    @off_loop
    def claim(self, *, now: float) -> None:
        """Make the cache this process's own."""
        with self._claiming:
            if self._lock is not None:
                return
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._directory / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                raise GitError(
                    f"the cache {self._directory} is used by another process", remedy="Give each process its own"
                ) from None
            self._lock = lock
            for mirror in self._directory.glob("*.git*"):
                if now - mirror.stat().st_mtime > MAX_AGE or mirror.suffix != ".git":
                    shutil.rmtree(mirror, ignore_errors=True)

    def close(self) -> None:
        """Leave the cache to others."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
