"""Record the writes of a piece of work, so that its next run can wait to read them back.

A cache lags behind the server by a few milliseconds, and a reconciler that runs in that gap sees a world without its
own last write. The client notes every write in the log that is open in the calling context, if there is one; a
context variable carries it through awaits and child tasks without anybody passing it on. What the log is for stands
in `kardinal.runtime.consistency`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from kardinal.objects import JsonObject, ResourceType

__all__ = ["Write", "note_delete", "note_write", "recorded_writes"]


@dataclass(frozen=True, slots=True)
class Write:
    """One write the server confirmed: the object it left and its revision, or neither when the object is gone."""

    resource: ResourceType
    namespace: str
    name: str
    uid: str | None
    revision: int | None
    object: JsonObject | None = field(default=None, repr=False)


_log: ContextVar[list[Write] | None] = ContextVar("kardinal_writes", default=None)


@contextmanager
def recorded_writes() -> Iterator[list[Write]]:
    """Collect the writes made inside the block, by this task and by those it starts."""
    log: list[Write] = []
    token = _log.set(log)
    try:
        yield log
    finally:
        _log.reset(token)


def note_write(resource: ResourceType, written: JsonObject) -> None:
    """Note what the server answered to a create, replace, patch or apply."""
    log = _log.get()
    if log is None or written.get("kind") != resource.kind:
        return
    metadata = written["metadata"]
    revision = metadata.get("resourceVersion", "")
    # The answer to the removal of the last finalizer still carries the old revision: what follows is a deletion.
    gone = "deletionTimestamp" in metadata and not metadata.get("finalizers")
    if gone or revision.isdecimal():
        log.append(
            Write(
                resource,
                metadata.get("namespace", ""),
                metadata["name"],
                metadata.get("uid"),
                None if gone else int(revision),
                None if gone else written,
            )
        )


def note_delete(resource: ResourceType, namespace: str | None, name: str, uid: str | None) -> None:
    """Note that an object is gone."""
    if (log := _log.get()) is not None:
        log.append(Write(resource, namespace or "", name, uid, None))
