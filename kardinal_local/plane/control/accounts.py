"""Keep a ServiceAccount `default` in every namespace, also after it was deleted."""

from __future__ import annotations

from kardinal_local.plane.kinds import Registry
from kardinal_local.plane.objects import Objects, WriteOptions, is_terminating
from kardinal_local.plane.storage import Entry, Store

__all__ = ["ACCOUNTS", "DEFAULT_ACCOUNT", "Accounts"]

ACCOUNTS = "serviceaccounts"
DEFAULT_ACCOUNT = "default"


class Accounts:
    """Looks at one namespace at a time."""

    def __init__(self, store: Store, *, registry: Registry, objects: Objects) -> None:
        self._store = store
        self._registry = registry
        self._objects = objects

    def reconcile(self, namespace: Entry) -> None:
        if is_terminating(namespace):
            return
        kind = self._registry.stored(ACCOUNTS)
        found = self._store.get(ACCOUNTS, namespace=namespace.name, name=DEFAULT_ACCOUNT)
        if found is None and kind is not None:
            document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEFAULT_ACCOUNT}}
            options = WriteOptions(manager="kube-controller-manager")
            self._objects.create(kind, document, namespace=namespace.name, options=options)
