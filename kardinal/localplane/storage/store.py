"""Objects, their revisions, and the file that survives the process (local-plane.md 3, 5.2).

One writer, one process: a read, a check and the commit that follows stand in one stretch of code without `await`, so
they are atomic without a lock. A commit reaches SQLite before memory, watchers or the client hear of it; a failed one
changes nothing.

This is the one module that blocks the event loop, on purpose: a commit in WAL mode with `synchronous=NORMAL` takes
some 40 µs, a thread hop more. `open` reads the whole file and belongs in a thread.

The revision must never go back, not even when the last object is deleted: rows carry the revision of their last write,
and a deletion, which leaves no row, records its own in `meta`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

import orjson

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import DirectoryUnusable
from kardinal.localplane.storage.history import Change, ChangeType, Entry, History, Subscription

__all__ = ["Store", "make_entry"]

FORMAT = 1
_TABLES = """
CREATE TABLE objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('revision', 1);
"""

Listener = Callable[[Change], None]


class Store:
    """All objects of one plane."""

    def __init__(self, database: sqlite3.Connection, *, rows: Iterable[tuple[str, bytes]], revision: int) -> None:
        self._database = database
        self._objects: dict[str, dict[str, dict[str, Entry]]] = {}
        self._keys: dict[str, tuple[str, str, str]] = {}
        self._dependents: dict[str, set[tuple[str, str, str]]] = {}
        self._listeners: list[Listener] = []
        self.revision = revision
        for resource, body in rows:
            entry = make_entry(resource, orjson.loads(body), body)
            self._remember(entry)
            self.revision = max(self.revision, entry.revision)
        self.history = History(floor=self.revision)

    @classmethod
    def open(cls, path: Path) -> Store:
        """Read the file at `path`, which is created when missing."""
        try:
            path.touch(mode=0o600)
            database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                # An empty file is worth no fsync: starting fresh would cost ten times as much.
                database.execute("PRAGMA synchronous=OFF")
                database.execute("PRAGMA journal_mode=WAL")
                revision = _prepare(database, path)
                database.execute("PRAGMA synchronous=NORMAL")
                return cls(database, revision=revision, rows=_rows(database))
            except BaseException:
                database.close()
                raise
        except (sqlite3.DatabaseError, orjson.JSONDecodeError) as error:
            raise DirectoryUnusable(
                f"{path} cannot be read ({error}): restore it from a copy, or move it away to start empty"
            ) from error

    def close(self) -> None:
        self.history.close()
        self._database.close()

    def listen(self, listener: Listener) -> None:
        """Call `listener` after every commit, in order, before the writer goes on."""
        self._listeners.append(listener)

    def subscribe(self, resource: str) -> Subscription:
        return self.history.subscribe(resource)

    def get(self, resource: str, *, namespace: str, name: str) -> Entry | None:
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def entries(self, resource: str, *, namespace: str = "") -> list[Entry]:
        """Objects in the order of their keys; an empty `namespace` means all of them."""
        spaces = self._objects.get(resource, {})
        # Keys are compared whole, "namespace/name", as etcd does: "a-b/x" comes before "a/x".
        chosen = [namespace] if namespace else sorted(spaces, key=lambda space: f"{space}/")
        return [space[name] for space in (spaces[key] for key in chosen if key in spaces) for name in sorted(space)]

    def resources(self) -> list[str]:
        """Resources of which at least one object may exist."""
        return list(self._objects)

    def dependents(self, uid: str) -> list[Entry]:
        """Objects that name `uid` in their ownerReferences."""
        keys = sorted(self._dependents.get(uid, ()))
        found = (self.get(resource, namespace=namespace, name=name) for resource, namespace, name in keys)
        return [entry for entry in found if entry is not None]

    def with_uid(self, uid: str) -> Entry | None:
        key = self._keys.get(uid)
        return None if key is None else self.get(key[0], namespace=key[1], name=key[2])

    def put(self, resource: str, document: JsonObject) -> Entry:
        """Commit a new state of one object, whose resourceVersion is set here."""
        entry = self._stamp(resource, document)
        previous = self.get(resource, namespace=entry.namespace, name=entry.name)
        self._database.execute(
            "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)",
            (resource, entry.namespace, entry.name, entry.revision, entry.raw),
        )
        if previous is not None:
            self._forget(previous)
        self._remember(entry)
        self._publish("ADDED" if previous is None else "MODIFIED", entry, previous)
        return entry

    def delete(self, resource: str, document: JsonObject) -> Entry:
        """Remove one object; `document` is its last state, as watchers will see it."""
        entry = self._stamp(resource, document)
        previous = self.get(resource, namespace=entry.namespace, name=entry.name)
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._database.execute(
                "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?",
                (resource, entry.namespace, entry.name),
            )
            self._database.execute("UPDATE meta SET value = ? WHERE key = 'revision'", (entry.revision,))
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        if previous is not None:
            self._forget(previous)
        self._publish("DELETED", entry, previous)
        return entry

    def _stamp(self, resource: str, document: JsonObject) -> Entry:
        document["metadata"]["resourceVersion"] = str(self.revision + 1)
        return make_entry(resource, document, orjson.dumps(document))

    def _publish(self, kind: ChangeType, entry: Entry, previous: Entry | None) -> None:
        self.revision = entry.revision
        change = Change(kind, entry, previous)
        self.history.append(change)
        for listener in self._listeners:
            listener(change)

    def _remember(self, entry: Entry) -> None:
        self._objects.setdefault(entry.resource, {}).setdefault(entry.namespace, {})[entry.name] = entry
        key = self._keys[entry.uid] = (entry.resource, entry.namespace, entry.name)
        for uid in entry.owners:
            self._dependents.setdefault(uid, set()).add(key)

    def _forget(self, entry: Entry) -> None:
        space = self._objects[entry.resource][entry.namespace]
        del space[entry.name]
        if not space:
            del self._objects[entry.resource][entry.namespace]
        self._keys.pop(entry.uid, None)
        for uid in entry.owners:
            keys = self._dependents[uid]
            keys.discard((entry.resource, entry.namespace, entry.name))
            if not keys:
                del self._dependents[uid]


def make_entry(resource: str, document: JsonObject, raw: bytes | None = None) -> Entry:
    """The entry of a document, committed or not (a dry run is answered with one that is not)."""
    metadata = document["metadata"]
    return Entry(
        resource=resource,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        revision=int(metadata.get("resourceVersion") or 0),
        labels=metadata.get("labels") or {},
        owners=tuple(reference["uid"] for reference in metadata.get("ownerReferences") or ()),
        raw=orjson.dumps(document) if raw is None else raw,
    )


def _prepare(database: sqlite3.Connection, path: Path) -> int:
    """Create the tables or check their format; the last recorded revision."""
    (found,) = database.execute("PRAGMA user_version").fetchone()
    if found > FORMAT:
        raise DirectoryUnusable(
            f"{path} was written by a newer kardinal (format {found}, this one reads {FORMAT}): use that version"
        )
    if found == 0:
        database.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT;")
    (revision,) = database.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
    return int(revision)


def _rows(database: sqlite3.Connection) -> Iterable[tuple[str, bytes]]:
    yield from database.execute("SELECT resource, body FROM objects")
