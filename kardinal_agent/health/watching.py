"""Watch the objects that promotions are judged by.

Watches are opened when a proof begins, follow what the adapter asks for, and are closed when the promotion ends: what
an agent holds in memory and what it asks of the API server grow with the proofs under way, not with the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from kardinal.kube import Forbidden, NotFound, Unauthorized
from kardinal.objects import POD, JsonObject, Key, ResourceType
from kardinal.objects.text import cut, printable
from kardinal.runtime import Channel, DynamicInformers, Handle, Outage
from kardinal_agent.health.pods import narrowed
from kardinal_agent.health.verdict import Objects, Watched

__all__ = ["HealthWatches", "Unreadable"]

READ_SECONDS = 2.0
"""Seconds of real time that a run waits for what it wants to see for the first time; later, it is run again."""

_ERROR = 256
"""Characters that are told of an error."""


class Unreadable(Exception):
    """Something that is looked at cannot be read now; the message says what, and who must act."""


class HealthWatches:
    """The watches of all promotions of an agent in one cluster: its own, or the one called `cluster`."""

    def __init__(self, informers: DynamicInformers, channel: Channel, *, cluster: str | None = None) -> None:
        self._informers = informers
        self._channel = channel
        self._cluster = cluster
        self._open: dict[Key, dict[Watched, Handle]] = {}
        self._reading: set[Key] = set()

    def watchers_in(self, namespace: str) -> Sequence[Key]:
        """Return the promotions that look at something in a namespace."""
        return [key for key, handles in self._open.items() if any(each.namespace == namespace for each in handles)]

    async def read(self, key: Key, wanted: Iterable[Watched]) -> Objects:
        """Return the objects that a promotion wants to see, which runs again when they change.

        Raises `Unreadable` while some of them cannot be read and are not optional.
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
            pass  # Whatever is read later leads to another run.
        finally:
            self._reading.discard(key)
        return self._objects({watched: handles[watched] for watched in wanted})

    def keep(self, key: Key, wanted: Iterable[Watched]) -> None:
        """Look at nothing but `wanted` any more."""
        handles, kept = self._open.get(key, {}), set(wanted)
        for watched in [each for each in handles if each not in kept]:
            handles.pop(watched).close()

    def release(self, key: Key) -> None:
        """Look at nothing for a promotion any more."""
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

    def _changed(self, key: Key) -> None:
        # A run that is just reading sees it anyway.
        if key not in self._reading:
            self._channel.push(key)

    def _objects(self, handles: Mapping[Watched, Handle]) -> Objects:
        found: dict[ResourceType, dict[str, JsonObject]] = {}
        for watched, handle in handles.items():
            if not watched.optional:
                if handle.outage is not None:
                    raise Unreadable(_said(watched, handle.outage, cluster=self._cluster))
                if not handle.synced:
                    where = f" in cluster {self._cluster}" if self._cluster else ""
                    raise Unreadable(f"waits for the first answer about {_place(watched)}{where}")
            of_kind = found.setdefault(watched.kind, {})
            of_kind.update((obj["metadata"]["uid"], obj) for obj in handle.list())
        return Objects({kind: list(objects.values()) for kind, objects in found.items()})


def named(obj: JsonObject) -> JsonObject:
    """Return the part of an object that names it."""
    kept = ("name", "namespace", "uid", "resourceVersion")
    return {"metadata": {field: obj["metadata"][field] for field in kept if field in obj["metadata"]}}


def _said(watched: Watched, outage: Outage, *, cluster: str | None) -> str:
    """Return why something cannot be read; of another cluster, whose server its author chose, in fixed words."""
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
