"""The objects that a walk reads.

Objects are read from the caches. An object that this reconcile has just applied replaces the cached one until the cache
has it, so that the next pass sees its own writes without waiting for a watch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from kardinal.graph.identity import ObjectKey, claims, is_owned_by, object_key
from kardinal.graph.selection import Selection
from kardinal.objects import GRAPH, JsonObject, ResourceType, labels_of
from kardinal.runtime import Informer

__all__ = ["LabelIndexes", "ObservedObjects", "index_by_graph"]

_INDEX = "owned-by-graph"
_LABEL = "label {}"


def index_by_graph(informer: Informer) -> None:
    """Make the objects of `informer` findable by the uid of the Graph that owns them."""
    informer.index(_INDEX, _owner_uids)


def _owner_uids(obj: JsonObject) -> Iterable[str]:
    references = obj["metadata"].get("ownerReferences") or ()
    return {str(reference.get("uid")) for reference in references if reference.get("kind") == GRAPH.kind}


class LabelIndexes:
    """Finds objects by a label; the index of a label key is made when the key is first used."""

    def __init__(self, informers: Mapping[ResourceType, Informer]) -> None:
        self._informers = informers
        self._filed: set[tuple[ResourceType, str]] = set()

    def candidates(self, selection: Selection) -> list[JsonObject]:
        """Return the objects that may match a selection; the caller compares each."""
        informer = self._informers[selection.resource]
        namespace = selection.namespace
        if not selection.labels:
            return informer.list(namespace)
        key, value = selection.labels[0]
        if (selection.resource, key) not in self._filed:
            self._filed.add((selection.resource, key))
            informer.index(_LABEL.format(key), partial(_values_of_label, key))
        return informer.by_index(_LABEL.format(key), f"{namespace or ''}/{value}")


def _values_of_label(key: str, obj: JsonObject) -> Iterable[str]:
    value = labels_of(obj).get(key)
    return () if value is None else (f"/{value}", f"{obj['metadata'].get('namespace', '')}/{value}")


class ObservedObjects:
    """Implements `Observed`, the objects that a walk reads, for one reconcile of one Graph.

    `specs`: the Graph's spec and those of its revisions; an object that none of them can have made is not the Graph's.
    """

    def __init__(
        self,
        informers: Mapping[ResourceType, Informer],
        labels: LabelIndexes,
        *,
        namespace: str,
        uid: str,
        specs: Sequence[JsonObject],
    ) -> None:
        self._informers = informers
        self._labels = labels
        self._namespace = namespace
        self._uid = uid
        self._specs = specs
        self._applied: dict[ObjectKey, JsonObject] = {}

    def add(self, key: ObjectKey, obj: JsonObject) -> None:
        """Add the object that the API server has returned for an apply."""
        self._applied[key] = obj

    def get(self, key: ObjectKey) -> JsonObject | None:
        return self._newer(key, self._informers[key.resource].get(key.namespace, key.name))

    def select(self, selection: Selection) -> list[JsonObject]:
        found = {object_key(selection.resource, obj): obj for obj in self._labels.candidates(selection)}
        found |= {key: obj for key, obj in self._applied.items() if key.resource == selection.resource}
        current = ((key, self._newer(key, obj)) for key, obj in sorted(found.items(), key=_place))
        return [obj for _, obj in current if obj is not None and selection.matches(obj)]

    def owned(self) -> list[tuple[ObjectKey, JsonObject]]:
        found = dict(self._applied)
        for resource, informer in self._informers.items():
            found |= {object_key(resource, obj): obj for obj in informer.by_index(_INDEX, self._uid)}
        current = ((key, self._newer(key, obj)) for key, obj in sorted(found.items(), key=_place))
        return [(key, obj) for key, obj in current if obj is not None and self._belongs(key, obj)]

    def _belongs(self, key: ObjectKey, obj: JsonObject) -> bool:
        return key.namespace == self._namespace and is_owned_by(obj, self._uid) and claims(self._specs, key)

    def _newer(self, key: ObjectKey, cached: JsonObject | None) -> JsonObject | None:
        applied = self._applied.get(key)
        if applied is None or cached is None:
            return applied or cached
        return cached if _revision(cached) > _revision(applied) else applied


def _place(item: tuple[ObjectKey, JsonObject]) -> tuple[str, str, str]:
    key = item[0]
    return key.resource.kind, key.namespace, key.name


def _revision(obj: JsonObject) -> int:
    return int(obj["metadata"]["resourceVersion"])
