"""Store objects and give out their revisions.

One writer, one process: a read, a check and the write that follows stand in one stretch of code without `await`, so
they are atomic without a lock. There are two sights of the same objects:

    store.get(...)             what a check must see: every write that was decided, committed or still on its way
    store.committed.get(...)   what a client may see: what is on disk

An answer that was decided by the first one, be it a refusal, may go out only after `settled`: what it speaks of might
still fail. A write that fails changes nothing, and takes back whatever was decided on top of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.storage.committed import Committed
from kardinal_local.plane.storage.committers import Committer, GroupCommitter, InlineCommitter
from kardinal_local.plane.storage.database import Database
from kardinal_local.plane.storage.entries import Change, ChangeType, Entry, make_entry

__all__ = ["Store"]


class Store:
    """All objects of one plane, for those who change them."""

    def __init__(self, committed: Committed, committer: Committer) -> None:
        self.committed = committed
        self._committer = committer
        self._staged = committer.staged

    @classmethod
    def open(cls, path: Path, *, durable: bool = False, first: Iterable[tuple[str, JsonObject]] = ()) -> Store:
        """Read the file at `path`; blocks, and belongs in a thread.

        When missing it is created with `first` in it, documents with the resources they are of.
        """
        database = Database.open(path, durable=durable, first=first)
        try:
            entries, revision = database.load()
        except BaseException:
            database.close()
            raise
        committed = Committed(entries, revision=revision)
        committer = GroupCommitter(database, committed) if durable else InlineCommitter(database, committed)
        return cls(committed, committer)

    def close(self) -> None:
        """Blocks, and belongs in a thread; what is not settled by now may not be published any more."""
        self._committer.close()

    async def settled(self) -> None:
        """Return when every write so far is committed, raise when one of them cannot be."""
        await self._committer.settled()

    def get(self, resource: str, *, namespace: str, name: str) -> Entry | None:
        return self._staged.get(resource, namespace=namespace, name=name)

    def entries(self, resource: str, *, namespace: str = "") -> list[Entry]:
        """Objects in the order of their keys; an empty `namespace` means all of them."""
        return self._staged.entries(resource, namespace=namespace)

    def resources(self) -> list[str]:
        """Resources of which at least one object may exist."""
        return self._staged.resources()

    def dependents(self, uid: str) -> list[Entry]:
        """Objects that name `uid` in their ownerReferences."""
        return self._staged.dependents(uid)

    def with_uid(self, uid: str) -> Entry | None:
        return self._staged.with_uid(uid)

    def put(self, resource: str, document: JsonObject, *, lossy: bool = False) -> Entry:
        """Decide on a new state of one object, whose resourceVersion is set here."""
        entry = self._stamped(resource, document, lossy=lossy)
        previous = self.get(resource, namespace=entry.namespace, name=entry.name)
        return self._commit("ADDED" if previous is None else "MODIFIED", entry, previous)

    def delete(self, resource: str, document: JsonObject) -> Entry:
        """Remove one object; `document` is its last state, as watchers will see it."""
        entry = self._stamped(resource, document)
        return self._commit("DELETED", entry, self.get(resource, namespace=entry.namespace, name=entry.name))

    def _stamped(self, resource: str, document: JsonObject, *, lossy: bool = False) -> Entry:
        document["metadata"]["resourceVersion"] = str(self._staged.revision + 1)
        return make_entry(resource, document, lossy=lossy)

    def _commit(self, kind: ChangeType, entry: Entry, previous: Entry | None) -> Entry:
        self._committer.commit(Change(kind, entry, previous))
        return entry
