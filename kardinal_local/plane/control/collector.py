"""Collect garbage by ownerReferences.

A dependent lives as long as one of its owners does. Its owners are *solid* (there), *dangling* (known not to exist)
or *waiting* (being deleted in the foreground, until their dependents are gone); an owner of a kind that is not served
may well exist and counts as solid. A deleted owner that asked for it is held until nothing that blocks it is left, or
until its dependents have forgotten it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.kinds import Kind, Registry
from kardinal_local.plane.objects import FOREGROUND, ORPHAN, Deletion, DeletionOptions, release
from kardinal_local.plane.storage import Entry, Store

__all__ = ["Collector"]


class _Owner(Enum):
    SOLID = "solid"
    DANGLING = "dangling"
    WAITING = "waiting"


class Collector:
    """Decides about one object at a time; `look_at` has another one looked at."""

    def __init__(
        self, store: Store, *, registry: Registry, deletion: Deletion, look_at: Callable[[Entry], None]
    ) -> None:
        self._store = store
        self._registry = registry
        self._deletion = deletion
        self._look_at = look_at

    def reconcile(self, kind: Kind, entry: Entry) -> None:
        document = entry.decode()
        if "deletionTimestamp" in document["metadata"]:
            self._serve_policy(kind, entry, document["metadata"].get("finalizers") or [])
        elif entry.owners:
            self._judge(kind, entry, document)

    def _serve_policy(self, kind: Kind, entry: Entry, finalizers: list[str]) -> None:
        """Do for a deleted owner what its propagation policy asks for."""
        dependents = self._store.dependents(entry.uid)
        if ORPHAN in finalizers:
            for dependent in dependents:
                self._forget_owners(dependent, dependent.decode(), gone={entry.uid})
            release(self._store, kind, entry, ORPHAN)
        elif FOREGROUND in finalizers:
            blocking = [dependent for dependent in dependents if _blocks(dependent, owner=entry.uid)]
            for dependent in blocking:
                self._look_at(dependent)
            if not blocking:
                release(self._store, kind, entry, FOREGROUND)

    def _judge(self, kind: Kind, entry: Entry, document: JsonObject) -> None:
        owners = {
            reference["uid"]: self._owner(reference, namespace=entry.namespace)
            for reference in document["metadata"]["ownerReferences"]
        }
        gone = {uid for uid, owner in owners.items() if owner is not _Owner.SOLID}
        if not gone:
            return
        if len(gone) < len(owners):
            self._forget_owners(entry, document, gone=gone)
            return
        in_stages = _Owner.WAITING in owners.values() and self._store.dependents(entry.uid)
        options = DeletionOptions(uid=entry.uid, policy=FOREGROUND if in_stages else None)
        self._deletion.delete(kind, namespace=entry.namespace, name=entry.name, options=options)

    def _owner(self, reference: JsonObject, *, namespace: str) -> _Owner:
        kind = self._registry.named(reference["apiVersion"], reference["kind"])
        if kind is None or (kind.namespaced and not namespace):
            return _Owner.SOLID
        where = namespace if kind.namespaced else ""
        owner = self._store.get(kind.storage, namespace=where, name=reference["name"])
        if owner is None or owner.uid != reference["uid"]:
            return _Owner.DANGLING
        metadata = owner.decode()["metadata"]
        waits = "deletionTimestamp" in metadata and FOREGROUND in (metadata.get("finalizers") or ())
        return _Owner.WAITING if waits else _Owner.SOLID

    def _forget_owners(self, entry: Entry, document: JsonObject, *, gone: set[str]) -> None:
        metadata = document["metadata"]
        metadata["ownerReferences"] = [one for one in metadata["ownerReferences"] if one["uid"] not in gone]
        if not metadata["ownerReferences"]:
            del metadata["ownerReferences"]
        self._store.put(entry.resource, document)


def _blocks(dependent: Entry, *, owner: str) -> bool:
    references = dependent.decode()["metadata"]["ownerReferences"]
    return any(one["uid"] == owner and one.get("blockOwnerDeletion") for one in references)
