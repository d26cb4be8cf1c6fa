"""The life of a CustomResourceDefinition: established, served, torn down.

Its kinds are served from the commit that establishes it, and no longer than the definition exists; a deleted one takes
its objects with it and ends the watches on them.
"""

from __future__ import annotations

from kardinal.localplane.builtin import CUSTOM_RESOURCE_DEFINITION
from kardinal.localplane.documents import JsonObject
from kardinal.localplane.kinds import Registry, crds
from kardinal.localplane.objects import Deletion, DeletionOptions, is_terminating, release
from kardinal.localplane.storage import Change, Entry, Store
from kardinal.runtime.clock import Clock

__all__ = ["Definitions"]


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
        else:
            self._serve(document)

    def reconcile(self, entry: Entry) -> None:
        if is_terminating(entry):
            self._tear_down(entry)
            return
        document = entry.decode()
        if crds.accept(document, conflict=self._conflict(document), now=self._clock.now()):
            self._store.put(CUSTOM_RESOURCE_DEFINITION.storage, document)

    def _tear_down(self, entry: Entry) -> None:
        # A definition is named like the collection of its objects.
        kind = self._registry.stored(entry.name)
        for instance in self._store.entries(entry.name):
            if kind is not None and not is_terminating(instance):
                options = DeletionOptions(uid=instance.uid, policy="")
                self._deletion.delete(kind, namespace=instance.namespace, name=instance.name, options=options)
        if not self._store.entries(entry.name):
            release(self._store, CUSTOM_RESOURCE_DEFINITION, entry, crds.CLEANUP_FINALIZER)

    def _conflict(self, document: JsonObject) -> str | None:
        """Whether the kind is already served under another name of the same group."""
        group, names = document["spec"]["group"], document["spec"]["names"]
        for kind in self._registry.kinds():
            if kind.group == group and kind.plural != names["plural"] and kind.kind == names["kind"]:
                return f'"{names["kind"]}" is already in use'
        return None

    def _serve(self, document: JsonObject) -> None:
        if not crds.is_established(document):
            return
        kinds = crds.kinds_of(document)
        served = {kind.version for kind in self._registry.kinds() if kind.qualified == document["metadata"]["name"]}
        if served - {kind.version for kind in kinds}:
            self._registry.remove(document["spec"]["group"], document["spec"]["names"]["plural"])
        for kind in kinds:
            self._registry.add(kind)
