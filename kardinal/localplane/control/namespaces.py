"""The end of a namespace.

A deleted namespace takes nothing new, has its content deleted, and goes when the last of it has gone. What its content
is waiting for (finalizers), it waits for too.
"""

from __future__ import annotations

from collections.abc import Iterator

from kardinal.localplane.builtin import NAMESPACE, NAMESPACE_FINALIZER
from kardinal.localplane.kinds import Kind, Registry
from kardinal.localplane.objects import Deletion, DeletionOptions, is_terminating
from kardinal.localplane.storage import Entry, Store

__all__ = ["Namespaces"]


class Namespaces:
    """Looks at one namespace at a time."""

    def __init__(self, store: Store, *, registry: Registry, deletion: Deletion) -> None:
        self._store = store
        self._registry = registry
        self._deletion = deletion

    def reconcile(self, entry: Entry) -> None:
        if not is_terminating(entry):
            return
        for kind, content in list(self._content(entry.name)):
            if not is_terminating(content):
                options = DeletionOptions(uid=content.uid, policy="")
                self._deletion.delete(kind, namespace=content.namespace, name=content.name, options=options)
        if next(self._content(entry.name), None) is None:
            self._let_go(entry)

    def _let_go(self, entry: Entry) -> None:
        document = entry.decode()
        finalizers = document["spec"].get("finalizers", [])
        if NAMESPACE_FINALIZER not in finalizers:
            return
        left = [finalizer for finalizer in finalizers if finalizer != NAMESPACE_FINALIZER]
        document["spec"] = {"finalizers": left} if left else {}
        if left or document["metadata"].get("finalizers"):
            self._store.put(NAMESPACE.storage, document)
        else:
            self._store.delete(NAMESPACE.storage, document)

    def _content(self, namespace: str) -> Iterator[tuple[Kind, Entry]]:
        for storage in self._store.resources():
            kind = self._registry.stored(storage)
            if kind is not None and kind.namespaced:
                for entry in self._store.entries(storage, namespace=namespace):
                    yield kind, entry
