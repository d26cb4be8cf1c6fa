"""Start informers at run time, and stop them when their objects are no longer read.

The informers that a program always needs are declared before its start (`Manager.informer`). Other objects are needed
only for a while: for example one object during a rollout, whose kind may not even be served yet. Such a watch is
opened, shared by all callers that ask for the same objects, and ended a little after the last caller has closed its
handle, because the next promotion tends to ask for the same objects again.

A handle answers from the objects read so far. It also reports why objects cannot be read: the kind is not served,
access is not allowed, or the server is unreachable. Since each of these can change, the informer retries with growing
waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kardinal.clock import Clock, Timer
from kardinal.kube import Client
from kardinal.objects import JsonObject, ResourceType
from kardinal.runtime.informer import Event, Informer, Outage, Projection
from kardinal.runtime.metrics import InformerMetrics, Metrics
from kardinal.runtime.reflector import WatchScope

__all__ = ["LINGER", "DynamicInformers", "Handle"]

LINGER = 30.0
"""The time in seconds for which a watch goes on after its last handle is closed."""

Changed = Callable[[Event | None], None]
"""Called with the change of an object, or with None when objects become readable or unreadable."""


class Handle:
    """A view of the objects in some scopes. Close it with `close` when they need not be watched any more."""

    def __init__(self, shares: Sequence[_Share], changed: Changed) -> None:
        self._shares = shares
        self._changed = changed
        for share in shares:
            share.join(self, changed)

    @property
    def synced(self) -> bool:
        """Return whether all scopes have been read once."""
        return all(share.informer.synced for share in self._shares)

    @property
    def informers(self) -> Sequence[Informer]:
        """The shared informers of the scopes, for callers that need their indexes."""
        return [share.informer for share in self._shares]

    @property
    def outage(self) -> Outage | None:
        """The reason why a scope is currently not followed; None if all are followed."""
        return next((found for share in self._shares if (found := share.informer.outage) is not None), None)

    def get(self, namespace: str | None, name: str) -> JsonObject | None:
        found = (share.informer.get(namespace, name) for share in self._shares)
        return next((obj for obj in found if obj is not None), None)

    def list(self) -> Sequence[JsonObject]:
        return [obj for share in self._shares for obj in share.informer.list()]

    async def wait_read(self) -> None:
        """Suspend until every scope has been read once, or the reason is known why it cannot be read."""
        for share in self._shares:
            await share.read.wait()

    async def wait_read_within(self, seconds: float) -> None:
        """Suspend as `wait_read` does, for at most some seconds of real time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wait_read()

    def close(self) -> None:
        """Close the handle; closing it twice is harmless."""
        for share in self._shares:
            share.leave(self)
        self._shares = ()


class DynamicInformers:
    """The informers of one API server that are started and stopped at run time."""

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
        self._shares: dict[tuple[WatchScope, Projection | None], _Share] = {}
        self._stopped: set[asyncio.Task[None]] = set()

    @property
    def informers(self) -> Sequence[Informer]:
        """The informers that are running."""
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
        """Watch objects. `changed` hears of each change after the first list, and when they become (un)readable."""
        scopes = [WatchScope(resource, namespace, labels, fields) for namespace in dict.fromkeys(namespaces)]
        return Handle([self._share(scope, projection) for scope in scopes], changed)

    def of(self, client: Client) -> DynamicInformers:
        """Return informers of another API server, with the same clock and metrics; the caller must close them."""
        return DynamicInformers(
            client, clock=self._clock, metrics=self._metrics, ended=self._ended, linger=self._linger
        )

    async def close(self) -> None:
        """End all watches."""
        for share in list(self._shares.values()):
            share.stop()
        await asyncio.gather(*self._stopped, return_exceptions=True)

    def _share(self, scope: WatchScope, projection: Projection | None) -> _Share:
        key = (scope, projection)
        if key not in self._shares:
            self._shares[key] = self._start(key)
        return self._shares[key]

    def _start(self, key: tuple[WatchScope, Projection | None]) -> _Share:
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

    def _end(self, key: tuple[WatchScope, Projection | None]) -> None:
        share = self._shares.pop(key)
        # Kept until it has ended, because a task without a reference may be garbage-collected before.
        self._stopped.add(share.task)
        share.task.add_done_callback(self._stopped.discard)


@dataclass(eq=False)
class _Share:
    """One informer, the handles that use it, and the timer that ends it after the last handle is closed."""

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
            self._tell(event)

    def moved(self) -> None:
        """Notify the handles that the objects can be read now, or that it is known why they cannot."""
        self.read.set()
        self._tell(None)

    def _tell(self, event: Event | None) -> None:
        for changed in list(self.users.values()):
            changed(event)
