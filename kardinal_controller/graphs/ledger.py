"""The record of the objects that a Graph has made outside its namespace, in the status of its newest GraphRevision.

An owner reference does not reach into another namespace or to the cluster. So the Graph writes down an object before
it makes it, and the uid afterwards: only an object with a recorded uid is the Graph's. An object without one, because
the controller stopped in between, is the Graph's if it carries the uid of the Graph.

    {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "other", "name": "settings", "uid": "5f2c…"}
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from kardinal.graph.identity import GRAPH_UID, ObjectKey
from kardinal.graph.results import OUTSIDE_LIMIT
from kardinal.kube import Client, KubeError, NotFound
from kardinal.objects import GRAPH_REVISION, JsonObject, Key, ResourceType
from kardinal.runtime import StatusWriter

__all__ = ["Ledger"]


class _Place(NamedTuple):
    """The identity of an object without the version in which it is read."""

    group: str
    kind: str
    namespace: str
    name: str


def _place(key: ObjectKey) -> _Place:
    return _Place(key.resource.group, key.resource.kind, key.namespace, key.name)


class Ledger:
    """The record of one Graph, kept in memory once it was read; no other program writes it."""

    def __init__(self, status: StatusWriter, graph: Key, *, uid: str, revisions: Sequence[JsonObject]) -> None:
        self._status = status
        self._namespace = graph.namespace
        self._uid = uid
        self._revision = ""
        self._entries: dict[_Place, JsonObject] = {}
        for revision in revisions:
            objects = (revision.get("status") or {}).get("objects")
            if objects is not None:
                self._revision = revision["metadata"]["name"]
                self._entries = {_place_of(entry): entry for entry in objects}
                break

    def __bool__(self) -> bool:
        return bool(self._entries)

    def owns(self, key: ObjectKey, obj: JsonObject) -> bool:
        """Return whether the Graph has made an object."""
        entry = self._entries.get(_place(key))
        if entry is None:
            return False
        if "uid" in entry:
            return bool(entry["uid"] == obj["metadata"]["uid"])
        return (obj["metadata"].get("annotations") or {}).get(GRAPH_UID) == self._uid

    def has_room(self, key: ObjectKey) -> bool:
        """Return whether another object can be recorded."""
        return _place(key) in self._entries or len(self._entries) < OUTSIDE_LIMIT

    def keys(self, resource: ResourceType) -> list[ObjectKey]:
        """Return the recorded objects of a kind."""
        places = (place for place in self._entries if place[:2] == (resource.group, resource.kind))
        return [ObjectKey(resource, place.namespace, place.name) for place in places]

    def lost(self) -> None:
        """Note that the newest revision is new, or was deleted and is made again: it has no record."""
        self._revision = ""

    async def follow(self, revision: str) -> None:
        """Move the record to the newest revision, before older ones are deleted."""
        if self._entries and revision != self._revision:
            await self._write(revision)

    async def record(self, revision: str, objects: Mapping[ObjectKey, JsonObject | None]) -> None:
        """Write down objects that are about to be made, which are None, and those that were."""
        changed = False
        for key, obj in objects.items():
            entry = _entry(key, obj)
            before = self._entries.get(_place(key))
            if before is None or (obj is not None and before != entry):
                self._entries[_place(key)] = entry
                changed = True
        if changed:
            await self._write(revision)

    async def forget_gone(
        self, revision: str, client: Client, kinds: Iterable[ResourceType], *, wanted: Collection[ObjectKey]
    ) -> bool:
        """Forget objects that no node wants and that are gone; return whether one of those is still there."""
        left = False
        forgotten = False
        for resource in kinds:
            for key in self.keys(resource):
                if key in wanted:
                    continue
                try:
                    obj = await client.get(resource, key.name, key.namespace or None)
                except NotFound:
                    obj = None
                except KubeError as error:
                    if error.transient:
                        raise
                    # The account may not look: the object is left where it is.
                    continue
                if obj is not None and self.owns(key, obj):
                    left = True
                    continue
                del self._entries[_place(key)]
                forgotten = True
        if forgotten:
            await self._write(revision)
        return left

    async def _write(self, revision: str) -> None:
        metadata = {"name": revision, "namespace": self._namespace}
        await self._status.write(GRAPH_REVISION, {"metadata": metadata}, {"objects": list(self._entries.values())})
        self._revision = revision


def _place_of(entry: JsonObject) -> _Place:
    group = str(entry["apiVersion"]).rpartition("/")[0]
    return _Place(group, entry["kind"], entry.get("namespace", ""), entry["name"])


def _entry(key: ObjectKey, obj: JsonObject | None) -> JsonObject:
    entry = {"apiVersion": key.resource.api_version, "kind": key.resource.kind, "name": key.name}
    entry |= {"namespace": key.namespace} if key.namespace else {}
    return entry | ({"uid": obj["metadata"]["uid"]} if obj is not None else {})
