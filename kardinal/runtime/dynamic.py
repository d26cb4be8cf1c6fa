"""Start informers at work, and stop them when their objects are not looked at any more.

What a program always needs is declared before its start (`Manager.informer`). What it looks at depends on its work
otherwise: one object for the minutes of a rollout, of a kind that may not even be served yet. Such a watch is opened,
shared by everyone who asks for the same, and ended a little after the last of them has closed theirs, because work of
the same kind tends to come back soon.

A handle answers from what was read. It also says why nothing can be read: the kind is not served, or not allowed, or
the server is gone. All of that may change, so the collection is tried again with growing pauses and the handle tells.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kardinal.kube import Client
from kardinal.objects import JsonObject, ResourceType
from kardinal.runtime.clock import Clock, Timer
from kardinal.runtime.informer import Event, Informer, Outage, Projection
from kardinal.runtime.metrics import InformerMetrics, Metrics
from kardinal.runtime.reflector import Scope

__all__ = ["LINGER", "DynamicInformers", "Handle"]

LINGER = 30.0
"""Seconds for which a watch goes on after the last look."""

Changed = Callable[[], None]


class Handle:
    """A view of the objects of some scopes; `close` it when they need not be watched any more."""

    def __init__(self, shares: Sequence[_Share], changed: Changed) -> None:
        self._shares = shares
        self._changed = changed
        for share in shares:
            share.join(self, changed)

    @property
    def synced(self) -> bool:
        """Return whether everything has been read once."""
        return all(share.informer.synced for share in self._shares)

    @property
    def outage(self) -> Outage | None:
        """Return why something is not followed now; None while all is."""
        return next((found for share in self._shares if (found := share.informer.outage) is not None), None)

    def get(self, namespace: str | None, name: str) -> JsonObject | None:
        found = (share.informer.get(namespace, name) for share in self._shares)
        return next((obj for obj in found if obj is not None), None)

    def list(self) -> Sequence[JsonObject]:
        return [obj for share in self._shares for obj in share.informer.list()]

    async def wait_read(self) -> None:
        """Suspend until everything has been read once, or it is known why something cannot be."""
        for share in self._shares:
            await share.read.wait()

    def close(self) -> None:
        """Look no more; closing twice is harmless."""
        for share in self._shares:
            share.leave(self)
        self._shares = ()


class DynamicInformers:
    """The informers of one API server that come and go."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        metrics: Metrics,
        ended: Callable[[asyncio.Task[None]], None],
        linger: float = LINGER,
    ) -> None:
        self._client = client
        self._clock = clock
        self._metrics = metrics
        self._ended = ended
        self._linger = linger
        self._shares: dict[tuple[Scope, Projection | None], _Share] = {}
        self._stopped: set[asyncio.Task[None]] = set()

    @property
    def informers(self) -> Sequence[Informer]:
        """Return those that run."""
        return [share.informer for share in self._shares.values()]

    def open(
        self,
        resource: ResourceType,
        *,
        namespaces: Sequence[str | None] = (None,),
        labels: str | None = None,
        fields: str | None = None,
        projection: Projection | None = None,
        changed: Changed,
    ) -> Handle:
        """Watch objects; `changed` is called at every change of them, and of whether they can be read."""
        scopes = [Scope(resource, namespace, labels, fields) for namespace in dict.fromkeys(namespaces)]
        return Handle([self._share(scope, projection) for scope in scopes], changed)

    def of(self, client: Client) -> DynamicInformers:
        """Return informers of another API server, with the same clock and figures; the caller closes them."""
        return DynamicInformers(
            client, clock=self._clock, metrics=self._metrics, ended=self._ended, linger=self._linger
        )

    async def close(self) -> None:
        """End all watches."""
        for share in list(self._shares.values()):
            share.stop()
        await asyncio.gather(*self._stopped, return_exceptions=True)

    def _share(self, scope: Scope, projection: Projection | None) -> _Share:
        key = (scope, projection)
        if key not in self._shares:
            self._shares[key] = self._start(key)
        return self._shares[key]

    def _start(self, key: tuple[Scope, Projection | None]) -> _Share:
        scope, projection = key
        metrics = self._metrics.informer(scope.resource.kind)

        def on_state() -> None:
            share.moved()

        informer = Informer(
            self._client, scope, clock=self._clock, metrics=metrics, projection=projection, on_state=on_state
        )
        task = asyncio.get_running_loop().create_task(informer.run(), name=f"watch {scope.resource.kind}")
        task.add_done_callback(self._ended)
        share = _Share(informer, task, metrics, self._clock, self._linger, ended=lambda: self._end(key))
        informer.on_event(share.heard)
        return share

    def _end(self, key: tuple[Scope, Projection | None]) -> None:
        share = self._shares.pop(key)
        # Kept until it is over: a task without a reference may be collected before its end.
        self._stopped.add(share.task)
        share.task.add_done_callback(self._stopped.discard)


@dataclass(eq=False)
class _Share:
    """One informer, the handles on it, and when it ends after the last of them."""

    informer: Informer
    task: asyncio.Task[None]
    metrics: InformerMetrics
    clock: Clock
    linger: float
    ended: Callable[[], None]
    read: asyncio.Event = field(default_factory=asyncio.Event)
    users: dict[Handle, Changed] = field(default_factory=dict)
    closing: Timer | None = None

    def join(self, handle: Handle, changed: Changed) -> None:
        self.users[handle] = changed
        if self.closing is not None:
            self.closing.cancel()
            self.closing = None

    def leave(self, handle: Handle) -> None:
        if self.users.pop(handle, None) is not None and not self.users:
            self.closing = self.clock.call_later(self.linger, self.stop)

    def stop(self) -> None:
        if self.closing is not None:
            self.closing.cancel()
            self.closing = None
        self.users.clear()
        self.ended()
        self.metrics.forget()
        self.task.cancel()

    def heard(self, event: Event) -> None:
        if not event.initial:
            self._tell()

    def moved(self) -> None:
        """Tell that there is something to see, or why there is not."""
        self.read.set()
        self._tell()

    def _tell(self) -> None:
        for changed in list(self.users.values()):
            changed()
