"""Tell the watch event of an own write from those of others.

A reconcile that has gone on with the answer to its write has seen that revision already, so the event of it contains no
news and needs no other run. The event often arrives before the answer; it is then kept until the revision is known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from kardinal.objects import JsonObject, Key
from kardinal.runtime.key_memory import KeyMemory

__all__ = ["ObjectWrite", "OwnWrites"]

Obj = TypeVar("Obj", bound=Hashable)


@dataclass(slots=True, eq=False)
class ObjectWrite:
    """A write to one object. `revision` is that of the answer, 0 while the write is under way.

    `heard`: the newest revision of which an event came while the write was under way.
    """

    revision: int = 0
    heard: int = 0

    def answered(self, obj: JsonObject) -> None:
        """Note the answer of the API server, with which the reconcile goes on."""
        self.revision = int(obj["metadata"]["resourceVersion"])


class OwnWrites(Generic[Obj]):
    """The writes of the reconciles of one controller; `Obj` names a written object of any kind.

    `push` is called with the key of a reconcile whose object was changed by another writer during the write.
    """

    def __init__(self, memory: KeyMemory, *, push: Callable[[Key], None]) -> None:
        self._writes: dict[Key, dict[Obj, ObjectWrite]] = memory.map()
        self._push = push

    @contextmanager
    def writing(self, key: Key, obj: Obj) -> Iterator[ObjectWrite]:
        """Write to an object in the reconcile of `key`; the answer is given to `ObjectWrite.answered`."""
        write = ObjectWrite()
        writes = self._writes.setdefault(key, {})
        writes[obj] = write
        try:
            yield write
        finally:
            if write.heard > write.revision:
                self._push(key)
            if write.heard >= write.revision and writes.get(obj) is write:
                del writes[obj]

    def is_own(self, key: Key, obj: Obj, revision: int) -> bool:
        """Return whether the reconciles of `key` know the state of an object at `revision` from a write of theirs."""
        write = self._writes.get(key, {}).get(obj)
        if write is None:
            return False
        if not write.revision:
            write.heard = max(write.heard, revision)
            return True
        if revision >= write.revision:
            del self._writes[key][obj]
        return revision <= write.revision
