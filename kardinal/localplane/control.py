"""What a cluster's controller manager does and this server must do itself.

Garbage collection by ownerReferences, the end of namespaces and of definitions, the establishment of definitions. All
of it is level-triggered work on keys: a commit says which object to look at, a single task looks at it and makes at
most the writes that are missing. It writes through the same rules as a client.

Two moments are easy to miss: when a dependent disappears its *owner* has to be looked at again (it may be waiting in a
foreground deletion), and when any object of a namespace disappears, so has the namespace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from kardinal.localplane import crds
from kardinal.localplane.admission import NAMESPACE_FINALIZER
from kardinal.localplane.builtin import CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from kardinal.localplane.deletion import FOREGROUND, ORPHAN, Deletion, DeletionOptions
from kardinal.localplane.documents import JsonObject
from kardinal.localplane.history import Change, Entry
from kardinal.localplane.kinds import Kind
from kardinal.localplane.registry import Registry
from kardinal.localplane.store import Store
from kardinal.runtime.clock import Clock

__all__ = ["Control"]

Key = tuple[str, str, str]  # storage, namespace, name


class Control:
    """The housekeeping task of one plane."""

    def __init__(self, store: Store, *, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._deletion = Deletion(store, clock=clock)
        self._pending: dict[Key, None] = {}
        self._uids: dict[str, Key] = {}
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._busy = False

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do."""
        return not self._pending and not self._busy

    def start(self) -> None:
        """Take up what an earlier process may have left undone, then follow the commits."""
        for definition in self._store.entries(CUSTOM_RESOURCE_DEFINITION.storage):
            self._serve(definition.decode())
        for storage in self._store.resources():
            for entry in self._store.entries(storage):
                self._uids[entry.uid] = _key(entry)
                self._consider(entry)
        self._store.listen(self._observe)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="localplane-control")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _observe(self, change: Change) -> None:
        entry = change.entry
        if change.type == "DELETED":
            self._uids.pop(entry.uid, None)
            for dependent in self._store.dependents(entry.uid):
                self._push(_key(dependent))
            for owner in entry.owners:
                if owner in self._uids:
                    self._push(self._uids[owner])
            if entry.namespace:
                self._push((NAMESPACE.storage, "", entry.namespace))
            self._push_definition_of(entry.resource)
            if entry.resource == CUSTOM_RESOURCE_DEFINITION.storage:
                self._retire(entry.decode())
        else:
            self._uids[entry.uid] = _key(entry)
            if entry.resource == CUSTOM_RESOURCE_DEFINITION.storage:
                self._serve(entry.decode())
            self._consider(entry)

    def _consider(self, entry: Entry) -> None:
        if entry.owners or entry.resource in _LIFECYCLES or b'"deletionTimestamp"' in entry.raw:
            self._push(_key(entry))

    def _push_definition_of(self, storage: str) -> None:
        if self._store.get(CUSTOM_RESOURCE_DEFINITION.storage, namespace="", name=storage) is not None:
            self._push((CUSTOM_RESOURCE_DEFINITION.storage, "", storage))

    def _push(self, key: Key) -> None:
        self._pending[key] = None
        self._ready.set()

    async def _run(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            while self._pending:
                key = next(iter(self._pending))
                del self._pending[key]
                self._busy = True
                try:
                    await self._reconcile(key)
                finally:
                    self._busy = False
                # Requests come first: a large teardown must not hold the event loop.
                await asyncio.sleep(0)

    async def _reconcile(self, key: Key) -> None:
        storage, namespace, name = key
        entry = self._store.get(storage, namespace=namespace, name=name)
        kind = self._registry.stored(storage)
        if entry is None or kind is None:
            return
        document = entry.decode()
        if "deletionTimestamp" in document["metadata"]:
            self._collect_for(kind, entry, document)
        elif entry.owners and self._lost_all_owners(kind, entry, document):
            return
        lifecycle = _LIFECYCLES.get(storage)
        current = self._store.get(storage, namespace=namespace, name=name)
        if lifecycle is not None and current is not None:
            lifecycle(self, current)

    def _lost_all_owners(self, kind: Kind, entry: Entry, document: JsonObject) -> bool:
        """Delete a dependent whose owners are all gone; forget those that are gone of one that has others."""
        references = document["metadata"]["ownerReferences"]
        left = [reference for reference in references if not self._is_absent(reference, namespace=entry.namespace)]
        if len(left) == len(references):
            return False
        if left:
            document["metadata"]["ownerReferences"] = left
            self._store.put(kind.storage, document)
            return False
        self._deletion.delete(kind, namespace=entry.namespace, name=entry.name, options=DeletionOptions(uid=entry.uid))
        return True

    def _is_absent(self, reference: JsonObject, *, namespace: str) -> bool:
        """Whether an owner is known not to exist; one of a kind that is not served may exist."""
        kind = self._registry.named(reference["apiVersion"], reference["kind"])
        if kind is None:
            return False
        where = namespace if kind.namespaced else ""
        owner = self._store.get(kind.storage, namespace=where, name=reference["name"])
        return owner is None or owner.uid != reference["uid"]

    def _collect_for(self, kind: Kind, entry: Entry, document: JsonObject) -> None:
        """Do for a deleted owner what its propagation policy asks for."""
        finalizers = document["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            for dependent in self._store.dependents(entry.uid):
                self._abandon(dependent, owner=entry.uid)
            self._release(kind, entry, ORPHAN)
        elif FOREGROUND in finalizers:
            waiting = False
            for dependent in self._store.dependents(entry.uid):
                waiting |= self._delete_dependent(dependent, owner=entry.uid)
            if not waiting:
                self._release(kind, entry, FOREGROUND)

    def _abandon(self, dependent: Entry, *, owner: str) -> None:
        document = dependent.decode()
        references = document["metadata"]["ownerReferences"]
        document["metadata"]["ownerReferences"] = [one for one in references if one["uid"] != owner]
        if not document["metadata"]["ownerReferences"]:
            del document["metadata"]["ownerReferences"]
        self._store.put(dependent.resource, document)

    def _delete_dependent(self, dependent: Entry, *, owner: str) -> bool:
        """Delete one dependent of a foreground deletion; whether the owner has to wait for it."""
        document = dependent.decode()
        blocks = any(
            reference["uid"] == owner and reference.get("blockOwnerDeletion")
            for reference in document["metadata"]["ownerReferences"]
        )
        kind = self._registry.stored(dependent.resource)
        if kind is None:
            return blocks
        if "deletionTimestamp" not in document["metadata"]:
            policy = FOREGROUND if self._store.dependents(dependent.uid) else None
            options = DeletionOptions(uid=dependent.uid, policy=policy)
            deleted = self._deletion.delete(kind, namespace=dependent.namespace, name=dependent.name, options=options)
            return blocks and not deleted.gone
        return blocks

    def _release(self, kind: Kind, entry: Entry, finalizer: str) -> None:
        """Take one finalizer off; an object without any is gone."""
        current = self._store.get(entry.resource, namespace=entry.namespace, name=entry.name)
        if current is None or current.uid != entry.uid:
            return
        document = current.decode()
        left = [one for one in document["metadata"].get("finalizers") or () if one != finalizer]
        document["metadata"]["finalizers"] = left
        if not left:
            del document["metadata"]["finalizers"]
        if left or (document.get("spec") or {}).get("finalizers"):
            self._store.put(kind.storage, document)
        else:
            self._store.delete(kind.storage, document)

    def _end_namespace(self, entry: Entry) -> None:
        """Empty a deleted namespace and let it go."""
        document = entry.decode()
        if "deletionTimestamp" not in document["metadata"]:
            return
        content = list(self._content_of(entry.name))
        for kind, object_ in content:
            if b'"deletionTimestamp"' not in object_.raw or "deletionTimestamp" not in object_.decode()["metadata"]:
                options = DeletionOptions(policy="")
                self._deletion.delete(kind, namespace=object_.namespace, name=object_.name, options=options)
        if any(True for _ in self._content_of(entry.name)):
            return
        finalizers = [one for one in document["spec"].get("finalizers", ()) if one != NAMESPACE_FINALIZER]
        document["spec"]["finalizers"] = finalizers
        if not finalizers:
            del document["spec"]["finalizers"]
        if finalizers or document["metadata"].get("finalizers"):
            if NAMESPACE_FINALIZER in entry.decode()["spec"].get("finalizers", ()):
                self._store.put(NAMESPACE.storage, document)
        else:
            self._store.delete(NAMESPACE.storage, document)

    def _content_of(self, namespace: str) -> Iterator[tuple[Kind, Entry]]:
        for storage in self._store.resources():
            kind = self._registry.stored(storage)
            if kind is not None and kind.namespaced:
                for entry in self._store.entries(storage, namespace=namespace):
                    yield kind, entry

    def _end_or_establish_definition(self, entry: Entry) -> None:
        document = entry.decode()
        if "deletionTimestamp" not in document["metadata"]:
            conflict = self._name_conflict(document)
            if crds.accept(document, conflict=conflict, now=self._clock.now()):
                self._store.put(CUSTOM_RESOURCE_DEFINITION.storage, document)
            return
        kind = self._registry.stored(entry.name)
        if kind is not None:
            for instance in self._store.entries(entry.name):
                if "deletionTimestamp" not in instance.decode()["metadata"]:
                    self._deletion.delete(
                        kind, namespace=instance.namespace, name=instance.name, options=DeletionOptions(policy="")
                    )
        if not self._store.entries(entry.name):
            self._release(CUSTOM_RESOURCE_DEFINITION, entry, crds.CLEANUP_FINALIZER)

    def _name_conflict(self, document: JsonObject) -> str | None:
        """Whether the kind is already served under another name of the same group."""
        group, names = document["spec"]["group"], document["spec"]["names"]
        for kind in self._registry.kinds():
            if kind.group == group and kind.plural != names["plural"] and kind.kind == names["kind"]:
                return f'"{names["kind"]}" is already in use'
        return None

    def _serve(self, document: JsonObject) -> None:
        """Serve the kinds of a definition as soon as it is established, and stop serving dropped versions."""
        if not crds.is_established(document):
            return
        kinds = crds.kinds_of(document)
        served = {kind.version for kind in self._registry.kinds() if kind.qualified == document["metadata"]["name"]}
        if served - {kind.version for kind in kinds}:
            self._registry.remove(document["spec"]["group"], document["spec"]["names"]["plural"])
        for kind in kinds:
            self._registry.add(kind)

    def _retire(self, document: JsonObject) -> None:
        self._registry.remove(document["spec"]["group"], document["spec"]["names"]["plural"])
        self._store.history.close(document["metadata"]["name"])


_LIFECYCLES: dict[str, Callable[[Control, Entry], None]] = {
    NAMESPACE.storage: Control._end_namespace,
    CUSTOM_RESOURCE_DEFINITION.storage: Control._end_or_establish_definition,
}


def _key(entry: Entry) -> Key:
    return entry.resource, entry.namespace, entry.name
