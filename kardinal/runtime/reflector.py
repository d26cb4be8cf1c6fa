"""Keep a copy of a collection: list it once, follow its changes, and never trust the stream to be unbroken.

The reflector asks for the whole state as a stream: a watch that first sends the existing objects, then a bookmark, then
changes. If a server does not support that, it uses a paged list followed by a watch. From then on it remembers a
*position*, the revision up to which everything was seen. A stream that ends or breaks is resumed from there, and
nothing is lost. If the server says that the position is too old, or newer than its own state, the whole state is read
again; the same happens after a stream that has sent nothing at all. The sink compares the new state with the old one
and so notices deletions that happened in the gap.

Three traps: the objects at the start of a state stream are unordered, so their revisions are not positions; a failure
can be an ERROR event inside an HTTP 200; and a server that accepts and closes at once would be flooded if a clean end
did not count as a failure.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeAlias

import structlog

from kardinal.clock import Clock
from kardinal.kube import (
    ApiError,
    Backoff,
    BadRequest,
    Client,
    ConnectionFailed,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ObjectList,
    TooManyRequests,
    Unauthorized,
    WatchEvent,
)
from kardinal.objects import JsonObject, Key, ResourceType, key_of

__all__ = ["Reflector", "Sink", "WatchScope"]

WATCH_SECONDS = (300, 600)
HEALTHY_AFTER = 120.0
SHORTEST_WATCH = 1.0
MUTE_WATCH = 65.0
RECONNECT = Backoff(base=0.8, cap=30.0, jitter=1.0)
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Stream: TypeAlias = AbstractAsyncContextManager[AsyncIterator[WatchEvent]]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WatchScope:
    """The objects to copy: a kind, and optionally one namespace and selectors that the server evaluates."""

    resource: ResourceType
    namespace: str | None = None
    labels: str | None = None
    fields: str | None = None


class Sink(Protocol):
    """The receiver of the copy."""

    def kept(self, obj: JsonObject) -> JsonObject:
        """Return the part of an object to keep, before the rest of a long list arrives."""
        ...

    def replace(self, objects: dict[Key, JsonObject], revision: str) -> None:
        """Take `objects`, each as `kept` returned it, as the whole state at `revision`."""
        ...

    def apply(self, change: str, obj: JsonObject) -> None:
        """Take one object that was ADDED, MODIFIED or DELETED."""
        ...

    def advance(self, revision: str) -> None:
        """Note that nothing changed up to `revision`."""
        ...

    def lost(self, error: KubeError) -> None:
        """Note that the collection is not followed: the request was refused, or failed twice in a row."""
        ...

    def resumed(self) -> None:
        """Note that the collection is followed again, from the last position."""
        ...


class ShortWatchError(ConnectionFailed):
    """A watch that ended at once without any event, so the server is not serving it."""


class Reflector:
    """Fill one sink from one collection, for as long as `run` runs."""

    def __init__(
        self,
        client: Client,
        scope: WatchScope,
        sink: Sink,
        *,
        clock: Clock,
        interrupted: Callable[[str], None],
        backoff: Backoff = RECONNECT,
    ) -> None:
        self.backing_off = False
        self._client = client
        self._scope = scope
        self._sink = sink
        self._clock = clock
        self._interrupted = interrupted
        self._backoff = backoff
        self._streams_state = True
        self._position: str | None = None
        # The minimum revision of the next reading of the state; empty asks for the newest.
        self._floor = ""
        self._allowance = client.allowance()
        self._log = log.bind(kind=scope.resource.kind)

    async def run(self) -> NoReturn:
        """Follow the collection; ends only by cancellation."""
        try:
            await self._run()
        finally:
            self._allowance.reset()

    async def _run(self) -> NoReturn:
        failures = 0
        while True:
            began = self._clock.monotonic()
            try:
                await self._follow_safely()
            except KubeError as error:
                if self._clock.monotonic() - began >= HEALTHY_AFTER:
                    failures = 0
                wait = self._judge(error, failures)
                failures += 1
                if wait or isinstance(error, (Forbidden, NotFound, Unauthorized)):
                    self._sink.lost(error)
                await self._back_off(wait)
            else:
                self._interrupted("closed")
                if self._clock.monotonic() - began >= HEALTHY_AFTER:
                    failures = 0

    def _judge(self, error: KubeError, failures: int) -> float:
        """Return the wait after a failure, and drop the position if it has become useless.

        The first failure after a good time causes no wait.
        """
        wait = self._backoff.delay(failures - 1) if failures else 0.0
        if isinstance(error, Expired):
            if self._position is None:
                # Not even the state can be read at this revision.
                self._floor = ""
            self._position = None
            self._interrupted("expired")
            return wait
        if isinstance(error, ApiError) and error.revision_too_large:
            self._position = None
            self._floor = ""
            self._interrupted("rewound")
            return wait
        if isinstance(error, TooManyRequests):
            self._interrupted("throttled")
            return max(wait, error.retry_after or self._backoff.delay(0))
        self._interrupted("refused" if isinstance(error, ApiError) else "disconnected")
        level = self._log.warning if failures else self._log.info
        level("watch interrupted", error=str(error), retry_in=round(wait, 1))
        return wait

    async def _back_off(self, wait: float) -> None:
        if wait <= 0:
            return
        self.backing_off = True
        try:
            await self._clock.sleep(wait)
        finally:
            self.backing_off = False

    async def _follow_safely(self) -> None:
        """Follow one stream.

        An object with the wrong shape from an untrusted server counts as an outage, not as a bug.
        """
        try:
            await self._follow_until_closed()
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            if self._client.bounds.trusted:
                raise
            self._position = None
            raise ConnectionFailed("an object has a shape that its kind does not have") from error

    async def _follow_until_closed(self) -> None:
        """Follow the collection from the present position to the orderly end of one stream."""
        if self._position is None and self._streams_state:
            try:
                return await self._stream_state_and_changes()
            except (BadRequest, Invalid) as error:
                self._log.info("this server does not stream lists; listing in pages instead", error=str(error))
                self._streams_state = False
        if self._position is None:
            await self._list_state()
        async with self._watch(self._position) as events:
            self._sink.resumed()
            await self._follow(events)
        return None

    async def _stream_state_and_changes(self) -> None:
        staged: dict[Key, JsonObject] = {}
        self._allowance.reset()
        async with self._watch(self._floor, initial_events=True) as events:
            async for change, obj in events:
                if change == "BOOKMARK":
                    if INITIAL_EVENTS_END in (obj["metadata"].get("annotations") or {}):
                        break
                elif change == "DELETED":
                    staged.pop(key_of(obj), None)
                else:
                    staged[key_of(obj)] = self._sink.kept(obj)
            else:
                raise ConnectionFailed("the stream ended before the state was complete")
            self._replace(staged, obj["metadata"]["resourceVersion"])
            await self._follow(events)

    async def _list_state(self) -> None:
        try:
            objects, revision = await self._pages(self._floor)
        except ApiError as error:
            if not self._floor or not (isinstance(error, Expired) or error.revision_too_large):
                raise
            objects, revision = await self._pages("")
        self._replace({key_of(obj): obj for obj in objects}, revision)

    async def _pages(self, floor: str) -> tuple[Iterable[JsonObject], str]:
        self._allowance.reset()
        size = self._client.bounds.page
        # With a revision, the server answers from its cache, in one page.
        page = await self._list(resource_version=floor) if floor else await self._list(limit=size)
        objects = self._kept(page)
        try:
            while page.continue_token:
                page = await self._list(limit=size, continue_token=page.continue_token)
                objects.extend(self._kept(page))
        except Expired:
            page = await self._list()
            objects = self._kept(page)
        return objects, page.resource_version

    def _kept(self, page: ObjectList) -> list[JsonObject]:
        return list(map(self._sink.kept, page.items))

    async def _list(
        self, *, limit: int | None = None, continue_token: str | None = None, resource_version: str | None = None
    ) -> ObjectList:
        scope = self._scope
        return await self._client.list(
            scope.resource,
            scope.namespace,
            labels=scope.labels,
            fields=scope.fields,
            limit=limit,
            continue_token=continue_token,
            resource_version=resource_version,
            allowance=self._allowance,
        )

    def _watch(self, position: str | None, *, initial_events: bool = False) -> Stream:
        scope = self._scope
        return self._client.watch(
            scope.resource,
            scope.namespace,
            labels=scope.labels,
            fields=scope.fields,
            resource_version=position,
            initial_events=initial_events,
            # Random, so that watches opened together do not all end together.
            timeout_seconds=random.randint(*WATCH_SECONDS),  # noqa: S311 - nothing secret about it
            allowance=self._allowance,
        )

    def _replace(self, objects: dict[Key, JsonObject], revision: str) -> None:
        self._sink.replace(objects, revision)
        self._position = self._floor = revision

    async def _follow(self, events: AsyncIterator[WatchEvent]) -> None:
        opened = asyncio.get_running_loop().time()
        seen = False
        try:
            async for change, obj in events:
                seen = True
                revision = obj["metadata"]["resourceVersion"]
                if change == "BOOKMARK":
                    self._sink.advance(revision)
                elif change in ("ADDED", "MODIFIED", "DELETED"):
                    self._sink.apply(change, obj)
                else:
                    self._log.warning("unknown kind of watch event ignored", change=change)
                    continue
                self._position = self._floor = revision
        finally:
            lasted = asyncio.get_running_loop().time() - opened
            if not seen and lasted >= MUTE_WATCH:
                # Healthy streams send a bookmark every minute. A server restored from a backup sends nothing about a
                # position that it has not reached, and might never reach.
                self._position = None
                self._floor = ""
        if not seen and lasted < SHORTEST_WATCH:
            raise ShortWatchError("the watch was closed at once")
