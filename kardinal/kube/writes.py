"""Record the writes of a reconcile, so that the next reconcile can wait to read them back.

A cache is a few milliseconds behind the server, and a reconciler that runs in this gap does not see its own last write.
The client notes every write in the log that is open in the calling context, if there is one. The log is a context
variable, so it follows awaits and child tasks without being passed as an argument. `kardinal.runtime.consistency` uses
the log.
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
    """One confirmed write: the resulting object and its revision; both are None if the object is gone."""

    resource: ResourceType
    namespace: str
    name: str
    uid: str | None
    revision: int | None
    object: JsonObject | None = field(default=None, repr=False)


_log: ContextVar[list[Write] | None] = ContextVar("kardinal_writes", default=None)


@contextmanager
def recorded_writes() -> Iterator[list[Write]]:
    """Collect the writes inside the block, made by this task and by tasks that it starts."""
    log: list[Write] = []
    token = _log.set(log)
    try:
        yield log
    finally:
        _log.reset(token)


def note_write(resource: ResourceType, written: JsonObject) -> None:
    """Note the server's answer to a create, replace, patch or apply."""
    log = _log.get()
    if log is None or written.get("kind") != resource.kind:
        return
    metadata = written["metadata"]
    revision = metadata.get("resourceVersion", "")
    # The answer to the removal of the last finalizer has the old revision, although the object is then deleted.
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
