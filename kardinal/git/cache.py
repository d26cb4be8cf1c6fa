"""The directory of mirrors on disk.

The directory name of a mirror is a hash of the URL, the credentials and the owner, which is the namespace that it is
for. So data that one credential may read is not found with another one, and data of one namespace never serves another.
The cache belongs to one process at a time, which holds a lock on it, because two processes would delete each other's
mirrors. Everything in the cache can be fetched again. So mirrors that were not used for long are deleted when the cache
is opened, and the least recently used ones when it grows too large. A mirror in use is never deleted. So a transfer is
watched while it writes, including its unfinished packs: it is stopped if the mirrors in use would fill the cache, or
those of one namespace its share of it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kardinal.git.credentials import GitCredentials
from kardinal.git.errors import GitError
from kardinal.processes.threads import off_loop
from kardinal.tree.repository_url import RepositoryURL

__all__ = ["CACHE_SIZE", "MAX_AGE", "Cache", "discard", "remove_unfinished"]

MAX_AGE = 7 * 24 * 3600.0
"""The maximum age in seconds: an unused mirror of this age is deleted, and a mirror in use is cloned again."""


CACHE_SIZE = 3 << 30
"""The default size of all mirrors together, in bytes."""


_UNFINISHED = ("objects/pack/tmp_*", "objects/incoming-*", "objects/tmp_objdir-*")
"""Names of files that `git` writes before they become part of a repository, and leaves behind when it fails."""


class Cache:
    """A directory of mirrors, of at most `size` bytes."""

    def __init__(self, directory: Path, *, size: int = CACHE_SIZE) -> None:
        self._directory = directory
        self._size = size
        self._share = size * 3 // 4
        """The most bytes of the mirrors in use of one namespace, so that it leaves room for others."""
        self._claiming = threading.Lock()
        self._lock: int | None = None
        self._sizes: dict[Path, int] = {}
        self._users: Counter[Path] = Counter()
        self._holding = threading.Lock()
        self._held: Counter[Path] = Counter()

    def path(self, url: RepositoryURL, credentials: GitCredentials | None, owner: str) -> Path:
        """Return the directory of the mirror of a repository for one owner and credential; it need not exist yet."""
        parts = (owner, url.text, *((credentials.key,) if credentials else ()))
        return self._directory / f"{_hashed(owner)[:8]}-{_hashed(*parts)[:32]}.git"

    @off_loop
    def claim(self, *, now: float) -> None:
        """Claim the cache for this process. Raises `GitError` if another process uses it."""
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
                else:
                    remove_unfinished(mirror)
                    self._sizes[mirror] = _size_of(mirror)

    @contextmanager
    def using(self, mirror: Path) -> Iterator[None]:
        """Keep a mirror from being deleted while the block runs."""
        with self._claiming:
            self._users[mirror] += 1
        try:
            yield
        finally:
            with self._claiming:
                self._users[mirror] -= 1
                # The modification time of the directory is the time of its last use, also after a restart.
                with suppress(OSError):
                    os.utime(mirror)

    def hold(self, mirror: Path) -> Callable[[], None]:
        """Keep a mirror from being deleted until the returned function is called.

        An edit that reads several mirrors in turn needs this. It may be called on the event loop: unlike `using`, it
        never waits for the disk.
        """
        with self._holding:
            self._held[mirror] += 1

        def release() -> None:
            with self._holding:
                self._held[mirror] -= 1
                if not self._held[mirror]:
                    del self._held[mirror]

        return release

    @off_loop
    def discard_unused(self, mirror: Path) -> bool:
        """Delete a mirror unless other callers use it; return whether it was deleted."""
        with self._claiming:
            if self._users[mirror] > 1:
                return False
            doomed = _put_aside(mirror)
        shutil.rmtree(doomed, ignore_errors=True)
        return True

    @off_loop
    def make_room(self, mirror: Path) -> int:
        """Note the size of a mirror, delete others if all are too large together, and return how much it may grow."""
        doomed = list[Path]()
        size = _size_of(mirror)
        with self._claiming:
            self._sizes[mirror] = size  # zero, if a transfer has failed
            for other in sorted(self._sizes, key=_last_use):
                if sum(self._sizes.values()) <= self._size:
                    break
                if not self._in_use(other):
                    doomed.append(_put_aside(other))
                    del self._sizes[other]
            # Mirrors that are not in use will be deleted as soon as the room is needed.
            used = {other: taken for other, taken in self._sizes.items() if other == mirror or self._in_use(other)}
            own = sum(taken for other, taken in used.items() if _owner_of(other) == _owner_of(mirror))
            left = min(self._size - sum(used.values()), self._share - own)
        for directory in doomed:
            shutil.rmtree(directory, ignore_errors=True)
        return left

    def _in_use(self, mirror: Path) -> bool:
        with self._holding:
            return bool(self._users[mirror] or self._held[mirror])

    def close(self) -> None:
        """Release the cache for other processes."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def discard(mirror: Path) -> None:
    """Delete a mirror."""
    if mirror.exists():
        shutil.rmtree(_put_aside(mirror), ignore_errors=True)


def remove_unfinished(mirror: Path) -> None:
    """Delete the unfinished files that a transfer has left behind."""
    for pattern in _UNFINISHED:
        for left in mirror.glob(pattern):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


def _hashed(*parts: str) -> str:
    return hashlib.sha256(chr(0).join(parts).encode()).hexdigest()


def _owner_of(mirror: Path) -> str:
    """Return the part of a mirror's name that stands for its namespace."""
    return mirror.name.partition("-")[0]


def _put_aside(mirror: Path) -> Path:
    """Rename a mirror before deletion, so that a reader keeps its open files and finds no half-deleted directory."""
    doomed = Path(f"{mirror}.{secrets.token_hex(4)}")
    with suppress(FileNotFoundError):
        mirror.rename(doomed)
    return doomed


def _size_of(mirror: Path) -> int:
    total = 0
    for directory, _, files in os.walk(mirror):
        for name in files:
            with suppress(OSError):
                total += os.stat(os.path.join(directory, name)).st_size
    return total


def _last_use(mirror: Path) -> float:
    try:
        return mirror.stat().st_mtime
    except OSError:
        return 0.0
