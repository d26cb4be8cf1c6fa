"""Index the objects of one moment by name, by UID and by owner.

Two moments matter to a server that answers only for what is on disk: the last commit, which is all that a client may
see, and what is staged on top of it, which is what the next check must see (see `store`). Both are a `View`; an
`Overlay` is the second one, and keeps nothing but the difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kardinal_local.plane.storage.entries import Change, Entry, Key

__all__ = ["Index", "Overlay", "View"]


class View(Protocol):
    """What may be asked of the objects of one moment."""

    @property
    def revision(self) -> int: ...

    def get(self, resource: str, *, namespace: str, name: str) -> Entry | None: ...

    def entries(self, resource: str, *, namespace: str = "") -> list[Entry]:
        """Objects in the order of their keys; an empty `namespace` means all of them."""
        ...

    def resources(self) -> list[str]:
        """Resources of which at least one object may exist."""
        ...

    def dependents(self, uid: str) -> list[Entry]:
        """Objects that name `uid` in their ownerReferences."""
        ...

    def with_uid(self, uid: str) -> Entry | None: ...


class Index:
    """Every object there is."""

    def __init__(self, entries: Iterable[Entry], *, revision: int) -> None:
        self.revision = revision
        self._objects: dict[str, dict[str, dict[str, Entry]]] = {}
        self._uids: dict[str, Entry] = {}
        self._dependents: dict[str, dict[Key, Entry]] = {}
        for entry in entries:
            self._remember(entry)
            self.revision = max(self.revision, entry.revision)

    def get(self, resource: str, *, namespace: str, name: str) -> Entry | None:
        return self._objects.get(resource, {}).get(namespace, {}).get(name)

    def entries(self, resource: str, *, namespace: str = "") -> list[Entry]:
        spaces = self._objects.get(resource, {})
        # Keys are compared whole, "namespace/name", as etcd does: "a-b/x" comes before "a/x".
        chosen = [namespace] if namespace else sorted(spaces, key=lambda space: f"{space}/")
        return [space[name] for space in (spaces[key] for key in chosen if key in spaces) for name in sorted(space)]

    def resources(self) -> list[str]:
        return list(self._objects)

    def dependents(self, uid: str) -> list[Entry]:
        found = self._dependents.get(uid, {})
        return [found[key] for key in sorted(found)]

    def with_uid(self, uid: str) -> Entry | None:
        return self._uids.get(uid)

    def apply(self, change: Change) -> None:
        """Move on by one change."""
        if change.previous is not None:
            self._forget(change.previous)
        if change.type != "DELETED":
            self._remember(change.entry)
        self.revision = change.entry.revision

    def _remember(self, entry: Entry) -> None:
        self._objects.setdefault(entry.resource, {}).setdefault(entry.namespace, {})[entry.name] = entry
        self._uids[entry.uid] = entry
        for uid in entry.owners:
            self._dependents.setdefault(uid, {})[entry.key] = entry

    def _forget(self, entry: Entry) -> None:
        space = self._objects[entry.resource][entry.namespace]
        del space[entry.name]
        if not space:
            del self._objects[entry.resource][entry.namespace]
        self._uids.pop(entry.uid, None)
        for uid in entry.owners:
            dependents = self._dependents[uid]
            dependents.pop(entry.key, None)
            if not dependents:
                del self._dependents[uid]


class Overlay:
    """A view with changes laid over it, until they are part of it or are taken back."""

    def __init__(self, base: View) -> None:
        self._base = base
        self._staged: dict[Key, Change] = {}
        self._revision = 0

    @property
    def revision(self) -> int:
        return max(self._revision, self._base.revision)

    def get(self, resource: str, *, namespace: str, name: str) -> Entry | None:
        change = self._staged.get((resource, namespace, name))
        return self._base.get(resource, namespace=namespace, name=name) if change is None else _after(change)

    def entries(self, resource: str, *, namespace: str = "") -> list[Entry]:
        found = self._laid_over(self._base.entries(resource, namespace=namespace))
        staged = [
            entry
            for entry in self._present()
            if entry.resource == resource and (not namespace or entry.namespace == namespace)
        ]
        return sorted(found + staged, key=lambda entry: f"{entry.namespace}/{entry.name}") if staged else found

    def resources(self) -> list[str]:
        return list({*self._base.resources(), *(resource for resource, _, _ in self._staged)})

    def dependents(self, uid: str) -> list[Entry]:
        found = self._laid_over(self._base.dependents(uid))
        return sorted(found + [entry for entry in self._present() if uid in entry.owners], key=lambda entry: entry.key)

    def with_uid(self, uid: str) -> Entry | None:
        staged = next((entry for entry in self._present() if entry.uid == uid), None)
        found = self._base.with_uid(uid)
        return staged or (None if found is None or found.key in self._staged else found)

    def stage(self, change: Change) -> None:
        self._staged[change.entry.key] = change
        self._revision = change.entry.revision

    def settle(self, change: Change) -> None:
        """The base has moved on by `change`; a later one of the same object stays."""
        if self._staged.get(change.entry.key) is change:
            del self._staged[change.entry.key]

    def clear(self) -> None:
        """Take everything back that is not settled."""
        self._staged.clear()
        self._revision = 0

    def _laid_over(self, entries: list[Entry]) -> list[Entry]:
        return [entry for entry in entries if entry.key not in self._staged] if self._staged else entries

    def _present(self) -> Iterable[Entry]:
        return (change.entry for change in self._staged.values() if change.type != "DELETED")


def _after(change: Change) -> Entry | None:
    return None if change.type == "DELETED" else change.entry
