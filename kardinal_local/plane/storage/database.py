"""Read and write the file that survives the process: SQLite in WAL mode.

Opening it must never lose anything silently. A file that is damaged, truncated, missing beside its own log or not ours
is refused with its path and what to do about it, and never replaced by an empty one; for that a new file appears under
its name whole or not at all, with the objects a plane starts with in it. Every row carries a checksum, because SQLite
notices a broken page but not a changed letter. A log that was torn by a crash is no damage: SQLite takes it up to the
last whole commit.

The revision must not go back, not even when the last object is deleted: rows carry the revision of their last write,
and a deletion, which leaves no row, records its own in `meta`.

All of this blocks and belongs in a thread, but for one thing: with `synchronous=NORMAL` a commit takes some 40 µs, a
thread hop more, so the event loop may call `write`. With FULL it waits for the disk.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import DirectoryUnusable, StorageFailed, StorageFull
from kardinal_local.plane.storage.entries import Change, Entry, make_entry
from kardinal_local.plane.storage.formats import CREATION, FIRST_REVISION, FORMAT, migrate

__all__ = ["Database"]

_WITHOUT_SPACE = frozenset({"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE"})
_HEADER = b"SQLite format 3\0"
_VERSIONS = slice(18, 20)
_WITH_LOG = b"\2\2"
"""Where a file says which versions of its format write and read it, and what says: those with a write-ahead log."""
_PUT = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)"


class Database:
    """An open file of one plane."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    @classmethod
    def open(cls, path: Path, *, durable: bool, first: Iterable[tuple[str, JsonObject]]) -> Database:
        """Open the file at `path`, which is created with `first` in it when missing.

        `durable` makes each commit wait for the disk.
        """
        try:
            if not path.exists():
                _create(path, first)
            _require_whole(path)
            connection = _connect(path)
            try:
                _check(connection, path)
                migrate(connection)
                connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            except BaseException:
                connection.close()
                raise
            if durable:
                _flush(path)
        except sqlite3.Error as error:
            if error.sqlite_errorname in _WITHOUT_SPACE:
                raise DirectoryUnusable(f"no space left for {path}: free some, then start again") from error
            if error.sqlite_errorname == "SQLITE_BUSY":
                raise DirectoryUnusable(f"{path} is open in another program: close that first") from error
            raise _unusable(path, str(error)) from error
        except OSError as error:
            raise DirectoryUnusable(f"{path} cannot be used: {error.strerror}") from error
        return cls(connection, path)

    def close(self) -> None:
        self._connection.close()

    def load(self) -> tuple[list[Entry], int]:
        """Everything stored, and the revision that was recorded last."""
        try:
            (revision,) = self._connection.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
            return list(self._entries()), int(revision)
        except (sqlite3.Error, TypeError) as error:
            raise _unusable(self._path, str(error)) from error

    def write(self, changes: Sequence[Change]) -> None:
        """Commit all of them or none."""
        execute = self._connection.execute
        try:
            if len(changes) == 1 and changes[0].type != "DELETED":
                # One statement is a transaction of its own.
                execute(_PUT, _row(changes[0].entry))
                return
            execute("BEGIN IMMEDIATE")
            for change in changes:
                entry = change.entry
                if change.type == "DELETED":
                    execute("DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", entry.key)
                    execute("UPDATE meta SET value = ? WHERE key = 'revision'", (entry.revision,))
                else:
                    execute(_PUT, _row(entry))
            execute("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            if error.sqlite_errorname in _WITHOUT_SPACE:
                raise StorageFull(f"no space left for {self._path}") from error
            raise StorageFailed(500, "InternalError", f"{self._path} cannot be written: {error}") from error

    def _entries(self) -> Iterator[Entry]:
        query = "SELECT resource, namespace, name, checksum, body FROM objects"
        for resource, namespace, name, checksum, body in self._connection.execute(query):
            where = f"{resource} {namespace}/{name}"
            if zlib.crc32(body) != checksum:
                raise _unusable(self._path, f"the content of {where} is not what was written")
            entry = make_entry(resource, orjson.loads(body), body)
            if entry.key != (resource, namespace, name):
                raise _unusable(self._path, f"{where} holds {entry.namespace}/{entry.name}")
            yield entry


def _row(entry: Entry) -> tuple[object, ...]:
    return (*entry.key, entry.revision, zlib.crc32(entry.raw), entry.raw)


def _create(path: Path, first: Iterable[tuple[str, JsonObject]]) -> None:
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise _unusable(path, f"it is missing, and yet its log {log} is there")
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    # Nothing in it is worth an fsync yet, which would cost ten times as much as all the rest.
    fresh.write_bytes(_image(first))
    fresh.replace(path)


def _image(first: Iterable[tuple[str, JsonObject]]) -> bytes:
    """A file with `first` in it, made in memory: SQLite takes a dozen steps to do the same on a disk."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.executescript(f"BEGIN; {CREATION}")
        for revision, (resource, document) in enumerate(first, start=FIRST_REVISION + 1):
            document["metadata"]["resourceVersion"] = str(revision)
            connection.execute(_PUT, _row(make_entry(resource, document)))
        connection.execute("COMMIT")
        image = bytearray(connection.serialize())
    image[_VERSIONS] = _WITH_LOG
    return bytes(image)


def _require_whole(path: Path) -> None:
    """SQLite takes a file of no bytes for a new one."""
    with path.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise _unusable(path, "it is not a database")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    # One process, one connection: no shared memory beside the file, and no second process.
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > FORMAT:
        raise DirectoryUnusable(
            f"{path} was written by a newer kardinal (format {found}, this one reads up to {FORMAT}): use that version"
        )
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise _unusable(path, verdict)
    if found == 0:
        raise _unusable(path, "it is not one of kardinal's")


def _flush(path: Path) -> None:
    """A file that was made without waiting for the disk must be there before a commit in its log can count."""
    for place in (path, path.parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _unusable(path: Path, problem: str) -> DirectoryUnusable:
    return DirectoryUnusable(
        f"{path} cannot be read ({problem}): put a good copy in its place, or move it and {path.name}-wal away "
        "to start empty"
    )
