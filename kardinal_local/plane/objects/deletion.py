"""Delete objects, at once or in stages.

A deletion removes an object only when nothing holds it: finalizers first have to be removed by those who set them. The
propagation policy is itself a finalizer (`foregroundDeletion`, `orphan`) that the garbage collector of `control`
takes off; a namespace is held by its content.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kardinal_local.plane import statuses
from kardinal_local.plane.builtin import CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.documents import JsonObject, timestamp
from kardinal_local.plane.kinds import Kind, crds
from kardinal_local.plane.objects.deletion_options import FOREGROUND, ORPHAN, DeletionOptions
from kardinal_local.plane.storage import Entry, Store, make_entry

__all__ = ["Deleted", "Deletion", "is_held_by_content", "is_terminating", "release"]


_IMMORTAL = frozenset({"default", "kube-public", "kube-system"})


@dataclass(frozen=True, slots=True)
class Deleted:
    """The last state, and whether the object is gone or merely on its way."""

    entry: Entry
    gone: bool


class Deletion:
    """Deletes objects of one store."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def delete(self, kind: Kind, *, namespace: str, name: str, options: DeletionOptions) -> Deleted:
        entry = self._store.get(kind.storage, namespace=namespace, name=name)
        if entry is None:
            raise statuses.not_found(kind, name)
        if kind is NAMESPACE and name in _IMMORTAL:
            raise statuses.forbidden(kind, name, "this namespace may not be deleted")
        _check_preconditions(kind, entry, options)
        document = entry.decode()
        metadata = document["metadata"]
        if _is_held(kind, metadata, policy=options.policy):
            return Deleted(self._mark(kind, entry, document, options=options), gone=False)
        _set_policy(metadata, options.policy)
        if options.dry_run:
            return Deleted(entry, gone=True)
        return Deleted(self._store.delete(kind.storage, document), gone=True)

    def _mark(self, kind: Kind, entry: Entry, document: JsonObject, *, options: DeletionOptions) -> Entry:
        metadata = document["metadata"]
        changed = _set_policy(metadata, options.policy)
        if "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = timestamp(self._clock.now())
            if kind is CUSTOM_RESOURCE_DEFINITION:
                crds.mark_deleted(document, now=self._clock.now())
            elif kind.generation:
                metadata["generation"] = metadata.get("generation", 0) + 1
            if kind is NAMESPACE:
                document.setdefault("status", {})["phase"] = "Terminating"
            elif kind is not CUSTOM_RESOURCE_DEFINITION:
                metadata["deletionGracePeriodSeconds"] = 0
            changed = True
        if not changed:
            return entry
        if options.dry_run:
            return make_entry(kind.storage, document)
        return self._store.put(kind.storage, document)


def is_terminating(entry: Entry) -> bool:
    # The cheap test says no for nearly all; a string that happens to hold the word is told apart by decoding.
    return b'"deletionTimestamp"' in entry.raw and "deletionTimestamp" in entry.decode()["metadata"]


def release(store: Store, kind: Kind, entry: Entry, finalizer: str) -> None:
    """Take one finalizer off an object that is being deleted; without any it is gone."""
    document = entry.decode()
    metadata = document["metadata"]
    left = [one for one in metadata.get("finalizers") or () if one != finalizer]
    metadata["finalizers"] = left
    if not left:
        del metadata["finalizers"]
    if left or is_held_by_content(kind, document):
        store.put(kind.storage, document)
    else:
        store.delete(kind.storage, entry.decode())


def is_held_by_content(kind: Kind, document: JsonObject) -> bool:
    """Whether this is a namespace that still has to be emptied."""
    return kind is NAMESPACE and bool(document["spec"].get("finalizers"))


def _is_held(kind: Kind, metadata: JsonObject, *, policy: str | None) -> bool:
    finalizers = set(metadata.get("finalizers") or ())
    if policy is not None:
        finalizers -= {FOREGROUND, ORPHAN}
    return bool(finalizers or policy or kind in (NAMESPACE, CUSTOM_RESOURCE_DEFINITION))


def _set_policy(metadata: JsonObject, policy: str | None) -> bool:
    """Make the finalizers say what the policy wants; whether they changed."""
    if policy is None:
        return False
    before = list(metadata.get("finalizers") or ())
    after = [finalizer for finalizer in before if finalizer not in {FOREGROUND, ORPHAN}]
    if policy:
        after.append(policy)
    if sorted(after) == sorted(before):
        return False
    if after:
        metadata["finalizers"] = after
    else:
        metadata.pop("finalizers", None)
    return True


def _check_preconditions(kind: Kind, entry: Entry, options: DeletionOptions) -> None:
    for title, wanted, actual, explanation in (
        ("UID", options.uid, entry.uid, "deleted and then recreated"),
        ("ResourceVersion", options.revision, str(entry.revision), "modified"),
    ):
        if wanted is not None and wanted != actual:
            # Only here does the real server name the kind and not the resource.
            raise statuses.conflict(
                replace(kind, plural=kind.kind),
                entry.name,
                f"the {title} in the precondition ({wanted}) does not match the {title} in record ({actual}). "
                f"The object might have been {explanation}",
            )
