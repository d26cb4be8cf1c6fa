"""Watch the objects by which promotions are judged.

Watches are opened at the first health check of a promotion, follow the adapter's list of objects, and are closed when
the promotion ends. The memory of an agent and its requests therefore grow with the promotions in progress, and not with
the size of the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from kardinal.kube import Forbidden, NotFound, Unauthorized
from kardinal.objects import POD, JsonObject, Key, ResourceType
from kardinal.objects.text import cut, printable
from kardinal.runtime import Channel, DynamicInformers, Event, Handle, Outage
from kardinal_agent.health.pods import narrowed
from kardinal_agent.health.verdict import Watched, WatchedObjects

__all__ = ["HealthWatches", "ObjectUnreadable"]

READ_SECONDS = 2.0
"""Seconds of real time that a run waits for the first list of a new watch; if it takes longer, the key is run again."""

_ERROR = 256
"""The most characters of an error that are shown."""


class ObjectUnreadable(Exception):
    """An object cannot be read now; the message names it, and who must act."""


class HealthWatches:
    """The watches of all promotions of an agent in one cluster: its own, or the one called `cluster`."""

    def __init__(self, informers: DynamicInformers, channel: Channel, *, cluster: str | None = None) -> None:
        self._informers = informers
        self._channel = channel
        self._cluster = cluster
        self._open: dict[Key, dict[Watched, Handle]] = {}
        self._reading: set[Key] = set()

    def watchers_in(self, namespace: str) -> Sequence[Key]:
        """Return the keys of the promotions with a watch in a namespace."""
        return [key for key, handles in self._open.items() if any(each.namespace == namespace for each in handles)]

    async def read(self, key: Key, wanted: Iterable[Watched]) -> WatchedObjects:
        """Return the objects of `wanted`; from then on, the promotion is run again when one of them changes.

        Raises `ObjectUnreadable` if an object that is not optional cannot be read now.
        """
        handles = self._open.setdefault(key, {})
        for watched in wanted:
            if watched not in handles:
                handles[watched] = self._opened(key, watched)
        self._reading.add(key)
        try:
            async with asyncio.timeout(READ_SECONDS):
                for watched in wanted:
                    await handles[watched].wait_read()
        except TimeoutError:
            pass  # A list that arrives later leads to another run.
        finally:
            self._reading.discard(key)
        return self._objects({watched: handles[watched] for watched in wanted})

    def keep(self, key: Key, wanted: Iterable[Watched]) -> None:
        """Stop the watches of a promotion except those of `wanted`."""
        handles = self._open.get(key, {})
        kept = set(wanted)
        for watched in [each for each in handles if each not in kept]:
            handles.pop(watched).close()

    def release(self, key: Key) -> None:
        """Stop all watches of a promotion."""
        for handle in self._open.pop(key, {}).values():
            handle.close()

    def _opened(self, key: Key, watched: Watched) -> Handle:
        labels = ",".join(f"{name}={value}" for name, value in watched.labels) or None
        return self._informers.open(
            watched.kind,
            namespaces=(watched.namespace,),
            labels=labels,
            fields=f"metadata.name={watched.name}" if watched.name is not None else None,
            projection=named if watched.names_only else narrowed if watched.kind == POD else None,
            changed=partial(self._changed, key),
        )

    def _changed(self, key: Key, _: Event | None) -> None:
        # A run that is reading now sees the change anyway.
        if key not in self._reading:
            self._channel.push(key)

    def _objects(self, handles: Mapping[Watched, Handle]) -> WatchedObjects:
        found: dict[ResourceType, dict[str, JsonObject]] = {}
        for watched, handle in handles.items():
            if not watched.optional:
                if handle.outage is not None:
                    raise ObjectUnreadable(_said(watched, handle.outage, cluster=self._cluster))
                if not handle.synced:
                    where = f" in cluster {self._cluster}" if self._cluster else ""
                    raise ObjectUnreadable(f"waits for the first answer about {_place(watched)}{where}")
            of_kind = found.setdefault(watched.kind, {})
            of_kind.update((obj["metadata"]["uid"], obj) for obj in handle.list())
        return WatchedObjects({kind: list(objects.values()) for kind, objects in found.items()})


def named(obj: JsonObject) -> JsonObject:
    """Return an object with its kind, name and namespace only."""
    kept = ("name", "namespace", "uid", "resourceVersion")
    return {"metadata": {field: obj["metadata"][field] for field in kept if field in obj["metadata"]}}


def _said(watched: Watched, outage: Outage, *, cluster: str | None) -> str:
    """Return why `watched` cannot be read. For another cluster in fixed words, because its author chose the server."""
    kind = f"{watched.kind.plural}.{watched.kind.group}".removesuffix(".")
    called, account = (f"cluster {cluster}", "its kubeconfig") if cluster else ("the cluster", "the agent")
    if isinstance(outage.error, NotFound):
        return f"{called} does not serve {kind} in version {watched.kind.version}: install what it belongs to"
    if isinstance(outage.error, (Forbidden, Unauthorized)):
        where = f" of {called}" if cluster else ""
        return f"{account} may not list and watch {kind} in namespace {watched.namespace}{where}: grant that"
    since = f"since {outage.since:%Y-%m-%d %H:%M:%S}Z"
    if cluster:
        return f"cluster {cluster} is unreachable {since}"
    return f"{_place(watched)} cannot be read {since}: {cut(printable(str(outage.error)), _ERROR)}"


def _place(watched: Watched) -> str:
    if watched.name is not None:
        return f"{watched.kind.kind} {watched.namespace}/{watched.name}"
    return f"{watched.kind.plural} of namespace {watched.namespace}"
