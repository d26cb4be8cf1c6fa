"""Git's lock files, taken such that a killed process does not leave one forever.

Git protects `X` by creating `X.lock` with O_EXCL, writes the new content there and renames it to `X`. Every process
that takes part must do the same. When Git is killed, it leaves its lock behind and asks a person to remove it; a
controller that may be killed and restarted at any time cannot do that.

So our lock files are marked: a claim file is created beside the lock (Git ignores its name), an flock is held on it,
and the lock is a hard link to it, which is as exclusive as O_EXCL. The kernel releases the flock when the process ends,
so a lock with two links and a free flock belonged to a process of ours that is dead. Locks of Git have one link and are
never touched.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kardinal.git.errors import PushRejected, TransientGitError
from kardinal.processes.threads import off_loop

__all__ = ["LockFile", "locked"]

_LOCKED_WITHIN = 2.0
"""The time in seconds to wait for a lock. It is held for milliseconds, and Git itself waits up to one second."""

_PAUSE = 0.002


class LockFile:
    """The lock file `<path>.lock`, which this process holds."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def replace(self, content: bytes) -> None:
        """Replace the content of the file durably, and release the lock in the same step."""
        os.write(self._descriptor, content)
        os.fsync(self._descriptor)
        try:
            os.rename(_lock(self._path), self._path)
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST):
                raise
            # Git leaves the directories of deleted branches behind.
            _remove_empty_directories(self._path)
            os.rename(_lock(self._path), self._path)


@contextmanager
def locked(path: str) -> Iterator[LockFile]:
    """Hold `<path>.lock`; wait a moment if another process has it."""
    descriptor, claim = _acquire(path)
    try:
        yield LockFile(path, descriptor)
    finally:
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(_lock(path)), os.fstat(descriptor)):
                os.unlink(_lock(path))
        os.unlink(claim)
        os.close(descriptor)


@off_loop
def _acquire(path: str) -> tuple[int, str]:
    # The other process lives in real time.
    deadline = time.monotonic() + _LOCKED_WITHIN
    directory, name = os.path.split(path)
    while True:
        try:
            os.makedirs(directory, exist_ok=True)
            claim = os.path.join(directory, f".{name}.{secrets.token_hex(6)}.lock")
            descriptor = os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            continue  # the directory was empty and Git has just removed it
        except (FileExistsError, NotADirectoryError):
            raise PushRejected(
                f"{name} can not be created: a branch is named like one of its parent directories",
                remedy="Delete or rename that branch",
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            while not _link(claim, _lock(path)):
                if not _break_stale(_lock(path)):
                    if time.monotonic() > deadline:
                        raise TransientGitError(
                            f"cannot lock {name}: another process holds {name}.lock",
                            remedy="If no Git process is running, remove that file",
                        )
                    time.sleep(_PAUSE)  # noqa: TID251 - see above
        except BaseException:
            os.unlink(claim)
            os.close(descriptor)
            raise
        return descriptor, claim


def _link(claim: str, lock: str) -> bool:
    try:
        os.link(claim, lock)
    except FileExistsError:
        return False
    return True


def _break_stale(lock: str) -> bool:
    """Remove a lock of a dead process of ours; return whether the lock is gone."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        found = os.fstat(descriptor)
        if found.st_nlink < 2:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # Only the holder of this flock removes the lock, so no other process can replace it between check and removal.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(lock), found):
                os.unlink(lock)
                _remove_claim(lock, found)
        return True
    finally:
        os.close(descriptor)


def _remove_claim(lock: str, found: os.stat_result) -> None:
    directory, name = os.path.split(lock.removesuffix(".lock"))
    with os.scandir(directory) as entries:
        claims = [
            entry.path for entry in entries if entry.name.startswith(f".{name}.") and entry.inode() == found.st_ino
        ]
    for claim in claims:
        os.unlink(claim)


def _remove_empty_directories(path: str) -> None:
    try:
        for directory, _, _ in os.walk(path, topdown=False):
            os.rmdir(directory)
    except OSError as error:
        raise PushRejected(
            f"{os.path.basename(path)} can not be created: other branches are named below it",
            remedy="Delete or rename those branches",
        ) from error


def _lock(path: str) -> str:
    return f"{path}.lock"
