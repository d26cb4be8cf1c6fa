"""Apply, delete and release the objects that the result of a walk names.

The failure of one object is the state of its node and stops nothing else. An object that the server refused as invalid
is not sent again until it differs; after any other failure it is sent again, with growing pauses. This memory may be
lost: a new process tries once more and gets the same answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Literal

import structlog

from kardinal.clock import Clock
from kardinal.graph.desired import Desired
from kardinal.graph.identity import ObjectKey
from kardinal.graph.walk_types import Apply, Prune, RefusedApply
from kardinal.kube import (
    Backoff,
    Client,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
)
from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.applied import applied_part, content_hash, covers
from kardinal.objects.errors import KardinalError
from kardinal.runtime.own_writes import ObjectWrite
from kardinal_controller.graphs.metrics import GraphMetrics
from kardinal_controller.graphs.observed import ObservedObjects

__all__ = ["Applier", "Memory"]

log = structlog.get_logger(__name__)

RETRY = Backoff(base=1.0, cap=1800.0, jitter=0.2)
CORRECTION_PAUSE = timedelta(seconds=10)
"""Between two corrections of one object, so that two programs that disagree do not write without end."""
CONCURRENT_WRITES = 8
MESSAGE_LIMIT = 256


@dataclass(slots=True)
class Memory:
    """The memory of one Graph beyond its objects; lost without harm."""

    failures: dict[ObjectKey, RefusedApply] = field(default_factory=dict)
    accepted: dict[ObjectKey, str] = field(default_factory=dict)
    corrected: dict[ObjectKey, float] = field(default_factory=dict)
    released: set[tuple[ObjectKey, str]] = field(default_factory=set)
    """Objects of others, by key and uid, of which the Graph has no field, or none that it may give up."""

    def keep(self, read: Collection[ObjectKey]) -> None:
        """Forget the failures of objects that the last walk did not read: no node wants them any more."""
        self.failures = {key: failure for key, failure in self.failures.items() if key in read}


class _Undeleted(KardinalError):
    """An object that could not be deleted or released; the answer of the server may name it, this does so if it may."""

    def __init__(self, prune: Prune, error: KubeError) -> None:
        done = "released" if prune.release else "deleted"
        answer = error.name if prune.confidential else str(error)[:MESSAGE_LIMIT]
        super().__init__(f"{prune.told} could not be {done}: {answer}")


class Applier:
    """Writes for one Graph, under its field manager; `client` returns the client with the rights to write a kind."""

    def __init__(
        self,
        client: Callable[[ResourceType], Client],
        *,
        clock: Clock,
        field_manager: str,
        memory: Memory,
        writing: Callable[[ObjectKey], AbstractContextManager[ObjectWrite]],
        metrics: GraphMetrics,
    ) -> None:
        self._client = client
        self._clock = clock
        self._manager = field_manager
        self._memory = memory
        self._writing = writing
        self._metrics = metrics
        self._slots = asyncio.Semaphore(CONCURRENT_WRITES)

    async def apply(self, applies: Sequence[Apply], view: ObservedObjects) -> None:
        """Apply each object; the answers go into `view`, failures into memory."""
        async with asyncio.TaskGroup() as group:
            for apply in applies:
                group.create_task(self._apply(apply, view))

    async def prune(self, prunes: Sequence[Prune]) -> None:
        """Delete or release the objects that are not being deleted already; raises the first failure after all."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._release(prune) if prune.release else self._prune(prune))
                for prune in prunes
                if not prune.under_way and not prune.held
            ]
        for error in filter(None, (task.result() for task in tasks)):
            raise error

    async def _apply(self, apply: Apply, view: ObservedObjects) -> None:
        key = apply.desired.key
        if apply.correction and (pause := self._pause(key)):
            message = f"{key} was changed again right after it had been corrected"
            retry_at = self._clock.now() + pause
            self._memory.failures[key] = RefusedApply(
                apply.desired.hash, "Conflict", "Contested", message, retry_at=retry_at
            )
            return
        try:
            async with self._slots:
                with self._writing(key) as write:
                    live = await self._send(apply)
                    write.answered(live)
        except KubeError as error:
            self._memory.failures[key] = self._failure(apply, error)
            self._metrics.applies.labels("refused" if error.final else "failed").inc()
            reason = error.name if apply.confidential else str(error)[:MESSAGE_LIMIT]
            log.info("an object of a Graph could not be applied", object=_named(apply), reason=reason)
            return
        log.info("an object of a Graph was applied", object=_named(apply))
        self._metrics.applies.labels("applied").inc()
        self._memory.failures.pop(key, None)
        self._memory.released.discard((key, live["metadata"]["uid"]))
        if apply.correction:
            self._memory.corrected[key] = self._clock.monotonic()
        self._settle(apply.desired, live)
        view.answers[key] = live

    async def _send(self, apply: Apply) -> JsonObject:
        """Apply an object, and its status as a subresource where the kind has one."""
        resource = apply.desired.key.resource
        send = partial(self._client(resource).apply, resource, field_manager=self._manager, force=apply.force)
        if "status" not in apply.object:
            return await send(apply.object)
        # First the object, which may not exist yet.
        await send({field: value for field, value in apply.object.items() if field != "status"})
        try:
            return await send({**_identity_of(apply.object), "status": apply.object["status"]}, subresource="status")
        except NotFound:
            return await send(apply.object)

    def _pause(self, key: ObjectKey) -> timedelta | None:
        corrected = self._memory.corrected.get(key)
        if corrected is None:
            return None
        left = CORRECTION_PAUSE - timedelta(seconds=self._clock.monotonic() - corrected)
        return left if left > timedelta(0) else None

    def _settle(self, desired: Desired, live: JsonObject) -> None:
        """Remember fields that the server stores with other values; otherwise they would count as drift for ever."""
        if covers(live, desired.object):
            self._memory.accepted.pop(desired.key, None)
        else:
            self._memory.accepted[desired.key] = content_hash(applied_part(live, desired.object))

    def _failure(self, apply: Apply, error: KubeError) -> RefusedApply:
        digest = apply.desired.hash
        before = self._memory.failures.get(apply.desired.key)
        attempts = before.attempts if before and before.hash == digest else 0
        message = str(error)[:MESSAGE_LIMIT]
        if error.final:
            return RefusedApply(digest, "Error", error.name, message)
        wait = max(RETRY.delay(attempts), error.retry_after or 0.0)
        state, reason = _state(error)
        retry_at = self._clock.now() + timedelta(seconds=wait)
        return RefusedApply(digest, state, reason, message, retry_at=retry_at, attempts=attempts + 1)

    async def _prune(self, prune: Prune) -> _Undeleted | None:
        key = prune.key
        metadata = prune.object["metadata"]
        try:
            async with self._slots:
                await self._client(key.resource).delete(
                    key.resource, key.name, key.namespace or None, uid=metadata["uid"]
                )
        except (NotFound, Conflict):
            # Gone already, or another object of that name: the next walk sees which.
            return None
        except KubeError as error:
            self._metrics.prunes.labels("failed").inc()
            return _Undeleted(prune, error)
        log.info("an object of a Graph was deleted", object=prune.told)
        self._metrics.prunes.labels("deleted").inc()
        return None

    async def _release(self, prune: Prune) -> _Undeleted | None:
        """Give up the fields of an object that another program made: apply its identity alone."""
        key = prune.key
        client = self._client(key.resource)
        try:
            async with self._slots:
                live = await client.get(key.resource, key.name, key.namespace or None)
                identity = _identity_of(prune.object)
                for subresource in _applied_parts(live, self._manager):
                    await client.apply(
                        key.resource, identity, field_manager=self._manager, subresource=subresource or None
                    )
        except (NotFound, Conflict):
            # Gone, or another object of that name. Nothing is made: the identity has a uid.
            pass
        except Forbidden:
            # Anybody may write the label, so an object that the account may not write holds up nothing.
            log.info("fields of an object could not be given up", object=key.resource.kind, reason="Forbidden")
        except KubeError as error:
            self._metrics.prunes.labels("failed").inc()
            return _Undeleted(prune, error)
        else:
            log.info("fields of an object were given up", object=key.resource.kind)
        self._memory.released.add((key, prune.object["metadata"]["uid"]))
        return None


def _identity_of(obj: JsonObject) -> JsonObject:
    """Return the part of an object that names it: by its uid, too, where that is known."""
    names = {field: obj["metadata"][field] for field in ("name", "namespace", "uid") if field in obj["metadata"]}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": names}


def _applied_parts(live: JsonObject, manager: str) -> list[str]:
    """Return what a manager has applied of an object: its subresources, then the object, which has the marks, as ""."""
    entries = live["metadata"].get("managedFields") or ()
    mine = {
        entry.get("subresource", "")
        for entry in entries
        if entry.get("manager") == manager and entry.get("operation") == "Apply"
    }
    return sorted(mine, reverse=True)


def _named(apply: Apply) -> str:
    """Return the name of an object for the log; the kind alone where the name may be made of a Secret."""
    return apply.desired.key.resource.kind if apply.confidential else str(apply.desired.key)


def _state(error: KubeError) -> tuple[Literal["Error", "Conflict", "SystemError"], str]:
    if isinstance(error, Conflict):
        return "Conflict", "FieldConflict"
    return ("SystemError" if error.transient else "Error"), error.name
