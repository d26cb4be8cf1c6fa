"""Establish, serve and tear down CustomResourceDefinitions.

Its kinds are served from the commit that establishes it, and no longer than the definition exists; a deleted one takes
its objects with it and ends the watches on them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kardinal_local.plane import schemas
from kardinal_local.plane.apply import Writer, track_update
from kardinal_local.plane.builtin import CUSTOM_RESOURCE_DEFINITION
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.kinds import Registry, crds, naming
from kardinal_local.plane.kinds.approval import note_approval
from kardinal_local.plane.objects import Deletion, DeletionOptions, is_terminating, release
from kardinal_local.plane.storage import Change, Entry, Store

__all__ = ["Definitions"]

_MANAGER = "kube-apiserver"


class Definitions:
    """Looks at one definition at a time, and keeps the registry in step with what is stored."""

    def __init__(self, store: Store, *, registry: Registry, deletion: Deletion, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._deletion = deletion
        self._clock = clock

    def load(self) -> None:
        """Serve what an earlier process established."""
        for entry in self._store.entries(CUSTOM_RESOURCE_DEFINITION.storage):
            self._serve(entry.decode())

    def observe(self, change: Change) -> None:
        if change.entry.resource != CUSTOM_RESOURCE_DEFINITION.storage:
            return
        document = change.entry.decode()
        if change.type == "DELETED":
            self._registry.remove(document["spec"]["group"], document["spec"]["names"]["plural"])
            self._store.committed.history.close(change.entry.name)
            return
        self._serve(document)
        if change.previous is not None and _served_form(change.previous.decode()) != _served_form(document):
            # What a watcher was told no longer holds; it comes back and is told anew.
            self._store.committed.history.close(change.entry.name)

    def siblings(self, entry: Entry) -> list[Entry]:
        """The other definitions, which may wait for a name that this one gave up."""
        found = self._store.entries(CUSTOM_RESOURCE_DEFINITION.storage)
        return [other for other in found if other.name != entry.name]

    def reconcile(self, entry: Entry) -> None:
        if is_terminating(entry):
            self._tear_down(entry)
            return
        document = entry.decode()
        now = self._clock.now()
        accepted = naming.accept(document, others=self._others(document), now=now)
        if note_approval(document, now=now) or accepted:
            self._put(entry, document)

    def _tear_down(self, entry: Entry) -> None:
        document = entry.decode()
        if crds.CLEANUP_FINALIZER not in (document["metadata"].get("finalizers") or ()):
            return
        if not naming.is_established(document):
            self._finish(entry, document, "NeverEstablished", "resource was never established")
        elif self._delete_instances(entry.name):
            self._finish(entry, document, "InstanceDeletionCompleted", "removed all instances")
        else:
            told = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
            if self._told(document, "True", *told):
                self._put(entry, document)

    def _delete_instances(self, storage: str) -> bool:
        """Delete the objects of a definition, which is named like their collection; whether all are gone."""
        kind = self._registry.stored(storage)
        for instance in self._store.entries(storage):
            if kind is not None and not is_terminating(instance):
                options = DeletionOptions(uid=instance.uid, policy=None)
                self._deletion.delete(kind, namespace=instance.namespace, name=instance.name, options=options)
        return not self._store.entries(storage)

    def _finish(self, entry: Entry, document: JsonObject, reason: str, message: str) -> None:
        self._told(document, "False", reason, message)
        release(self._store, CUSTOM_RESOURCE_DEFINITION, self._put(entry, document), crds.CLEANUP_FINALIZER)

    def _put(self, entry: Entry, document: JsonObject) -> Entry:
        """Write a status under the name of the server."""
        writer = Writer(_MANAGER, self._clock.now(), "status", {"f:spec": {}})
        managed = track_update(entry.decode(), document, by=writer, schema=CUSTOM_RESOURCE_DEFINITION.schema)
        document["metadata"]["managedFields"] = managed
        return self._store.put(CUSTOM_RESOURCE_DEFINITION.storage, document)

    def _told(self, document: JsonObject, status: str, reason: str, message: str) -> bool:
        """Say how far the deletion is; whether that is news."""
        before = document["status"].get("conditions")
        naming.set_condition(document, "Terminating", status, reason, message, now=self._clock.now())
        return bool(document["status"]["conditions"] != before)

    def _others(self, document: JsonObject) -> Iterator[JsonObject]:
        """The other definitions of the group."""
        for entry in self._store.entries(CUSTOM_RESOURCE_DEFINITION.storage):
            other = entry.decode()
            if entry.name != document["metadata"]["name"] and other["spec"]["group"] == document["spec"]["group"]:
                yield other

    def _serve(self, document: JsonObject) -> None:
        if not naming.is_established(document):
            return
        name = document["metadata"]["name"]
        changed = document["metadata"].get("generation", 1) > 1
        kinds = crds.kinds_of(document, outdated=lambda validator: changed and self._has_outdated(name, validator))
        served = {kind.version for kind in self._registry.kinds() if kind.qualified == name}
        if served != {kind.version for kind in kinds}:
            self._registry.remove(document["spec"]["group"], document["spec"]["names"]["plural"])
        for kind in kinds:
            self._registry.add(kind)

    def _has_outdated(self, storage: str, validator: schemas.Validator) -> bool:
        """Whether some object does not look as its schema has it now."""
        return any((found := entry.decode()) != validator.filled(found) for entry in self._store.entries(storage))


def _served_form(document: JsonObject) -> tuple[JsonObject, JsonObject]:
    return document["spec"], document["status"].get("acceptedNames") or {}
