"""The references of a repository on this machine, moved by compare-and-swap.

A reference is a loose file or a line of `packed-refs`. Under its lock file, which every Git process respects, its value
cannot change. So the steps are: lock, read, compare, write, rename. `git update-ref NAME NEW OLD` does the same, and
both may race each other. libgit2 offers parts of this, but creates a reference without checking again under the lock,
and its push to a local path was seen to overwrite a concurrent commit.

A value of None means that the reference does not exist: `old=None` creates it, and fails if another process is first,
which is how a number is claimed; `new=None` deletes it. Hooks are not run and reflogs not written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kardinal.git.errors import DamagedRepository, PushRejected, RefMoved
from kardinal.git.lockfile import LockFile, locked
from kardinal.git.names import branch_of, check_ref
from kardinal.processes.threads import off_loop

__all__ = ["HeldRef", "RefStore"]

_ID = re.compile(rb"[0-9a-f]{40}")
_PACKED_LINE = re.compile(rb"^([0-9a-f]{40}) (refs/.+)$", re.MULTILINE)


class HeldRef:
    """A reference under its lock. `value` cannot change until the lock is released."""

    def __init__(self, store: RefStore, name: str, lock: LockFile) -> None:
        self._store = store
        self._lock = lock
        self.name = name
        self.value = store.read(name)

    def write(self, value: str) -> None:
        """Set the reference; this releases the lock."""
        if self.value is None:
            self._store.refuse_conflicts(self.name)
        self._lock.replace(value.encode() + b"\n")
        self.value = value

    def delete(self) -> None:
        """Delete the reference."""
        self._store.forget(self.name)
        self.value = None


class RefStore:
    """The references below one Git directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._packed = os.path.join(directory, "packed-refs")

    @off_loop
    def read(self, name: str) -> str | None:
        """Return the id of the object that a reference points to."""
        check_ref(name)
        loose = self._loose(name)
        if loose is None:
            packed = re.search(rb"^([0-9a-f]{40}) %s$" % re.escape(name.encode()), self._packed_text(), re.MULTILINE)
            return packed[1].decode() if packed else None
        return self._value(name, loose)

    @off_loop
    def list(self, prefix: str) -> dict[str, str]:
        """Return every reference below `prefix`, which ends in a slash, with its value."""
        loose = dict(self._loose_below(prefix))
        # Read after the loose ones, so that a reference that is packed meanwhile is seen twice instead of being missed.
        packed = {
            name: match[1].decode()
            for match in _PACKED_LINE.finditer(self._packed_text())
            if (name := match[2].decode("utf-8", "replace")).startswith(prefix)
        }
        return packed | {name: self._value(name, content) for name, content in loose.items()}

    @contextmanager
    def hold(self, name: str) -> Iterator[HeldRef]:
        """Yield the reference under its lock."""
        with locked(self._path(name)) as lock:
            yield HeldRef(self, name, lock)

    @off_loop
    def update(self, name: str, *, old: str | None, new: str | None) -> None:
        """Move a reference from `old` to `new`; raises `RefMoved` if it is not at `old`."""
        with self.hold(name) as held:
            if held.value != old:
                raise RefMoved(name, old=old)
            if new is not None:
                held.write(new)
            elif old is not None:
                held.delete()
        if new is None:
            self._remove_empty_parents(name)

    def refuse_conflicts(self, name: str) -> None:
        """Raise if `name` is a parent or a child of a packed reference.

        For loose references, the file system prevents this.
        """
        parents = name.split("/")
        text = self._packed_text()
        taken = any(f" {'/'.join(parents[:depth])}\n".encode() in text for depth in range(3, len(parents)))
        if taken or f" {name}/".encode() in text:
            raise PushRejected(
                f"{branch_of(name)} can not be created beside a branch named like its directory",
                remedy="Delete or rename that branch",
            )

    def forget(self, name: str) -> None:
        """Delete a reference whose lock is held: the packed line first, or its old value would reappear."""
        line = re.compile(rb"^[0-9a-f]{40} %s\n(\^[0-9a-f]{40}\n)?" % re.escape(name.encode()), re.MULTILINE)
        if line.search(self._packed_text()):
            with locked(self._packed) as lock:
                lock.replace(line.sub(b"", self._packed_text()))
        with suppress(FileNotFoundError):
            os.unlink(self._path(name))

    def _value(self, name: str, loose: bytes) -> str:
        if loose.startswith(b"ref:"):
            raise PushRejected(f"{branch_of(name)} is a symbolic reference", remedy="Name the branch that it points to")
        if not _ID.match(loose):
            raise DamagedRepository(f"{branch_of(name)} holds no object id")
        return loose[:40].decode()

    def _loose_below(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        for directory, _, files in os.walk(os.path.join(self._directory, prefix)):
            below = os.path.relpath(directory, self._directory)
            for name in (f"{below}/{file}" for file in files if not file.endswith(".lock")):
                content = self._loose(name)
                if content is not None:
                    yield name, content

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, check_ref(name))

    def _loose(self, name: str) -> bytes | None:
        try:
            with open(os.path.join(self._directory, name), "rb") as file:
                return file.read()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    def _packed_text(self) -> bytes:
        try:
            with open(self._packed, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def _remove_empty_parents(self, name: str) -> None:
        # refs/heads itself is kept.
        with suppress(OSError):
            for depth in range(name.count("/"), 2, -1):
                os.rmdir(os.path.join(self._directory, *name.split("/")[:depth]))
