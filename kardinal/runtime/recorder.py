"""Kubernetes Events, which a person reads with `kubectl describe`.

Writing Events must never delay the work. `event` notes an Event and returns; one task writes it. A repeated Event
becomes a *series*: one Event object whose count grows, and repetitions before the first write are written at once. The
name of an Event is derived from its content, so that another process, or this one after a restart, continues the series
instead of creating a second object.

Limits keep the cost low even if many things fail: a number of unwritten Events, a budget per object and one per
namespace that refill slowly, and a number of remembered series. Events beyond the limits are counted and dropped.
Namespaces are written in turn, and none may have more than a quarter of the unwritten Events, so that one namespace
with thousands of objects does not delay the others.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import structlog

from kardinal.clock import Clock
from kardinal.kube import (
    AlreadyExists,
    Backoff,
    Client,
    ConnectionFailed,
    DeadlineExceeded,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
)
from kardinal.objects import EVENT, JsonObject
from kardinal.runtime.rotation import Rotation

__all__ = ["EventRecorder", "ResourceRef"]

MAX_PENDING = 1000
MAX_PENDING_OF_NAMESPACE = 250
MAX_SERIES = 4096
BURST = 25
REFILL_SECONDS = 300.0
NAMESPACE_BURST = 500
NAMESPACE_REFILL_SECONDS = 1.0
MAX_NOTE_BYTES = 1024
MAX_TRIES = 12
FLUSH_SECONDS = 2.0
RETRY = Backoff(base=1.0, cap=10.0, jitter=0.5)
PASSING = (ConnectionFailed, DeadlineExceeded, ServerError, TooManyRequests)

EventType = Literal["Normal", "Warning"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """The object that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    @classmethod
    def to(cls, obj: JsonObject) -> ResourceRef:
        """Return a reference to `obj`, as it was read from the API server."""
        metadata = obj["metadata"]
        return cls(
            obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"], metadata.get("uid", "")
        )

    def to_json(self) -> JsonObject:
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class _Content:
    """The content by which repeated Events are recognised."""

    regarding: ResourceRef
    type: str
    reason: str
    action: str
    note: str

    @property
    def namespace(self) -> str:
        return self.regarding.namespace or "default"

    @property
    def name(self) -> str:
        digest = hashlib.blake2b(repr(self).encode(), digest_size=8).hexdigest()
        return f"{self.regarding.name[:200].rstrip('.-')}.{digest}"


@dataclass(slots=True)
class _Series:
    """The number of repetitions of one content, and how many of them are written."""

    first: datetime
    last: datetime
    count: int = 0
    inherited: int = 0  # counted by an earlier process
    written: int = 0  # the count in the Event object of the cluster; 0: there is none yet


@dataclass(slots=True)
class _Budget:
    """Tokens, at most `burst`, of which one is refilled every `refill` seconds."""

    burst: int
    refill: float
    tokens: float
    at: float

    def has_one(self, now: float) -> bool:
        self.tokens = min(self.burst, self.tokens + (now - self.at) / self.refill)
        self.at = now
        return self.tokens >= 1


class EventRecorder:
    """Note Events immediately, and write them soon after."""

    def __init__(self, client: Client, *, clock: Clock, controller: str, dropped: Callable[[str], None]) -> None:
        self._client = client
        self._clock = clock
        self._controller = controller
        self._instance = f"{controller}-{socket.gethostname()}"[:128]
        self._dropped = dropped
        self._series: OrderedDict[_Content, _Series] = OrderedDict()
        self._budgets: OrderedDict[ResourceRef | str, _Budget] = OrderedDict()
        self._pending: Rotation[_Content] = Rotation()
        self._wake = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._backing_off = False

    @property
    def idle(self) -> bool:
        """Return whether no Event waits to be written; those that wait for the server to come back do not count."""
        return not self._pending or self._backing_off

    def event(
        self,
        regarding: JsonObject | ResourceRef,
        *,
        type: EventType = "Normal",  # noqa: A002 - the field's name in Kubernetes
        reason: str,
        note: str,
        action: str | None = None,
    ) -> None:
        """Note an Event about an object. Never waits."""
        about = regarding if isinstance(regarding, ResourceRef) else ResourceRef.to(regarding)
        content = _Content(about, type, reason, action or reason, _cut(note))
        now = self._clock.now()
        series = self._series.setdefault(content, _Series(now, now))
        self._series.move_to_end(content)
        series.count += 1
        series.last = now
        if content in self._pending:
            return
        if len(self._pending) >= MAX_PENDING or self._pending.count(content.namespace) >= MAX_PENDING_OF_NAMESPACE:
            self._dropped("queue_full")
        elif not self._may_write(about, content.namespace):
            self._dropped("throttled")
        else:
            self._pending.put(content)
            self._drained.clear()
            self._wake.set()
        if len(self._series) > MAX_SERIES:
            self._series.popitem(last=False)

    async def run(self) -> None:
        """Write the noted Events; ends only by cancellation."""
        while True:
            await self._wake.wait()
            while (content := self._pending.first()) is not None:
                await self._write_patiently(content)
                self._pending.remove(content)
                self._pending.end_turn(content.namespace)
            self._wake.clear()
            self._drained.set()

    async def flush(self) -> None:
        """Wait a moment for the noted Events to be written, and count the rest as dropped."""
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._drained.wait()
        except TimeoutError:
            for _ in range(len(self._pending)):
                self._dropped("shutdown")
            self._pending.clear()

    def _may_write(self, about: ResourceRef, namespace: str) -> bool:
        now = self._clock.monotonic()
        budgets = (
            self._budget(about, burst=BURST, refill=REFILL_SECONDS, now=now),
            # The budget of an object is forgotten after thousands of other objects, but this one is used by all of
            # them.
            self._budget(namespace, burst=NAMESPACE_BURST, refill=NAMESPACE_REFILL_SECONDS, now=now),
        )
        if not all(budget.has_one(now) for budget in budgets):
            return False
        for budget in budgets:
            budget.tokens -= 1
        return True

    def _budget(self, of: ResourceRef | str, *, burst: int, refill: float, now: float) -> _Budget:
        budget = self._budgets.setdefault(of, _Budget(burst, refill, burst, now))
        self._budgets.move_to_end(of)
        if len(self._budgets) > MAX_SERIES:
            self._budgets.popitem(last=False)
        return budget

    async def _write_patiently(self, content: _Content) -> None:
        for failures in range(MAX_TRIES):
            try:
                await self._write(content, self._series.get(content))
            except PASSING:
                self._backing_off = True
                try:
                    await self._clock.sleep(RETRY.delay(failures))
                finally:
                    self._backing_off = False
            except KubeError as error:
                self._dropped("refused")
                log.warning("an Event was refused", reason=content.reason, error=str(error))
                return
            else:
                return
        self._dropped("unwritable")

    async def _write(self, content: _Content, series: _Series | None) -> None:
        if series is None:
            return
        said = series.count
        try:
            await (self._continue if series.written else self._begin)(content, series)
        except NotFound:
            if not series.written:
                raise
            # Events are deleted after an hour; the repetitions since then start a new series.
            said = series.count = series.count - series.written
            series.inherited, series.first, series.written = 0, series.last, 0
            await self._begin(content, series)
        series.written = said

    async def _begin(self, content: _Content, series: _Series) -> None:
        try:
            await self._client.create(EVENT, self._body(content, series))
        except AlreadyExists:
            existing = await self._client.get(EVENT, content.name, content.namespace)
            series.inherited = (existing.get("series") or {}).get("count", 1)
            await self._continue(content, series)

    async def _continue(self, content: _Content, series: _Series) -> None:
        await self._client.patch(EVENT, content.name, content.namespace, {"series": self._count(series)})

    def _count(self, series: _Series) -> JsonObject:
        return {"count": series.inherited + series.count, "lastObservedTime": _micro_time(series.last)}

    def _body(self, content: _Content, series: _Series) -> JsonObject:
        body: JsonObject = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"name": content.name, "namespace": content.namespace},
            "eventTime": _micro_time(series.first),
            "type": content.type,
            "reason": content.reason,
            "action": content.action,
            "note": content.note,
            "regarding": content.regarding.to_json(),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
        }
        if series.count > 1:
            body["series"] = self._count(series)
        return body


def _micro_time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _cut(note: str) -> str:
    return note.encode()[:MAX_NOTE_BYTES].decode(errors="ignore")
