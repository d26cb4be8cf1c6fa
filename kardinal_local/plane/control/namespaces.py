"""Finish the deletion of namespaces.

A deleted namespace takes nothing new, has its content deleted, and goes when the last of it has gone. What its content
is waiting for (finalizers), it waits for too, and says so in its conditions: `kubectl describe` is where a person looks
when a namespace does not go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kardinal_local.plane.builtin import NAMESPACE, NAMESPACE_FINALIZER
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.documents import JsonObject, timestamp
from kardinal_local.plane.kinds import Kind, Registry
from kardinal_local.plane.objects import Deletion, DeletionOptions, is_terminating
from kardinal_local.plane.storage import Entry, Store

__all__ = ["Namespaces"]

_Content = Sequence[tuple[Kind, Entry]]


class Namespaces:
    """Looks at one namespace at a time."""

    def __init__(self, store: Store, *, registry: Registry, deletion: Deletion, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._deletion = deletion
        self._clock = clock

    def reconcile(self, entry: Entry) -> None:
        if not is_terminating(entry):
            return
        for kind, content in self._content(entry.name):
            if not is_terminating(content):
                options = DeletionOptions(uid=content.uid, policy="")
                self._deletion.delete(kind, namespace=content.namespace, name=content.name, options=options)
        left = self._content(entry.name)
        document = entry.decode()
        told = self._tell(document, left)
        finalizers = document["spec"].get("finalizers", [])
        if not left and NAMESPACE_FINALIZER in finalizers:
            kept = [finalizer for finalizer in finalizers if finalizer != NAMESPACE_FINALIZER]
            document["spec"] = {"finalizers": kept} if kept else {}
            if not kept and not document["metadata"].get("finalizers"):
                self._store.delete(NAMESPACE.storage, entry.decode() | {"spec": {}})
                return
            told = True
        if told:
            self._store.put(NAMESPACE.storage, document)

    def _tell(self, document: JsonObject, left: _Content) -> bool:
        """Say in the conditions what the namespace waits for; whether anything has changed."""
        status = document["status"] = dict(document.get("status", {}))
        before = {condition["type"]: condition for condition in status.get("conditions", ())}
        if not left and not before:
            # What goes at once has nothing to explain.
            return False
        moment = timestamp(self._clock.now())
        after = []
        for condition in _conditions(left):
            old = before.get(condition["type"], {})
            same = old.get("status") == condition["status"]
            after.append(condition | {"lastTransitionTime": old["lastTransitionTime"] if same else moment})
        status["conditions"] = after
        return after != list(before.values())

    def _content(self, namespace: str) -> list[tuple[Kind, Entry]]:
        return [
            (kind, entry)
            for storage in self._store.resources()
            if (kind := self._registry.stored(storage)) is not None and kind.namespaced
            for entry in self._store.entries(storage, namespace=namespace)
        ]


def _conditions(left: _Content) -> list[JsonObject]:
    resources = Counter(f"{kind.plural}.{kind.group}" for kind, _ in left)
    finalizers = Counter(
        finalizer for _, entry in left for finalizer in entry.decode()["metadata"].get("finalizers", ())
    )
    remaining = _counted("Some resources are remaining: ", resources, " has ")
    held = _counted("Some content in the namespace has finalizers remaining: ", finalizers, " in ")
    removed, finished = "All content successfully removed", "All content-preserving finalizers finished"
    deleted = "All content successfully deleted, may be waiting on finalization"
    return [
        _condition("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
        _condition(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        _condition("NamespaceDeletionContentFailure", "ContentDeleted", deleted),
        _condition("NamespaceContentRemaining", "SomeResourcesRemain", remaining, holds=True)
        if resources
        else _condition("NamespaceContentRemaining", "ContentRemoved", removed),
        _condition("NamespaceFinalizersRemaining", "SomeFinalizersRemain", held, holds=True)
        if finalizers
        else _condition("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", finished),
    ]


def _counted(beginning: str, counts: Counter[str], middle: str) -> str:
    return beginning + ", ".join(
        f"{name}{middle}{number} resource instances" for name, number in sorted(counts.items())
    )


def _condition(kind: str, reason: str, message: str, *, holds: bool = False) -> JsonObject:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}
